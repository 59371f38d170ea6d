// Package why explains a recorded run: Run.Explain what it did and why it failed, Run.Why where one value comes from.
//
// Run.Why goes back from the value: to the step that set or changed it, to the values that this step read, and to the
// conditions under which it ran. Then rules examine the steps for what may explain a wrong value; rules.go has their
// table. Answer.AddFacts adds what a replay of the run has seen in the expressions of the steps.
//
// The package reads a recording through a Run, and knows no sessions. Package debugger makes the Run of a recording.
package why
