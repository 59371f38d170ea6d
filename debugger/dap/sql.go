package dap

import (
	"fmt"

	godap "github.com/google/go-dap"

	"glasshouse/debugger"
)

// firstStatementReference is the reference to the text of statement 1. That of the program is 1.
const firstStatementReference = 1001

// errSQLFrame is the error for a request that has no meaning in a frame of SQL.
var errSQLFrame = fmt.Errorf("%w: a statement can be read and stepped through, and nothing else", debugger.ErrRequest)

// statementSource returns the source of the statement with a number. Its name tells editors its language.
func statementSource(number int) *godap.Source {
	return &godap.Source{
		Name: fmt.Sprintf("query %d.sql", number), SourceReference: firstStatementReference + number - 1,
		PresentationHint: "normal", Origin: "a statement of the program",
	}
}

// statementOf returns the number of the statement that a source has, and 0 for any other source.
func statementOf(s *godap.Source) int {
	if s == nil || s.SourceReference < firstStatementReference {
		return 0
	}
	return s.SourceReference - firstStatementReference + 1
}

// statementFrame returns a frame of SQL.
func statementFrame(f debugger.SQLFrameView) godap.StackFrame {
	return godap.StackFrame{
		Id: int(f.Frame), Name: f.Name, Line: f.Line, EndLine: f.EndLine, Column: f.Column,
		Source: statementSource(f.Statement), PresentationHint: "normal",
	}
}
