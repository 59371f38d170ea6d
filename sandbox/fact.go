package sandbox

// Fact is what an expression of the code got and gave when the code ran again, in numbers of that run.
type Fact struct {
	Line   int64  `json:"line"`
	Column int64  `json:"column"` // of the expression in its line, in bytes from 0
	Code   string `json:"code"`   // of the expression, at most about 80 characters
	Kind   string `json:"kind"`   // what is so, such as "lost" for rows that an operation left out
	Score  int    `json:"score"`  // from 0 to 100; facts are ranked by it
	Text   string `json:"text"`
	Times  int64  `json:"times"` // how often the expression was evaluated
}
