// Package program describes the program of a recording by its statements: what each one reads and sets, and the
// operations in it that often explain a wrong result. A Program is made of the descriptions that the guest has written
// into the recording, or else of the names in the program's text.
package program
