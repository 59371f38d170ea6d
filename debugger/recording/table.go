package recording

import (
	"errors"
	"fmt"
)

// maxDefinitions bounds the names, the codes, the threads and the statements of one recording, each.
const maxDefinitions = 1 << 18

// maxStatementBytes bounds the descriptions of statements, which are decoded to explain a value.
const maxStatementBytes = 8 << 20

// ModuleName is the function name of a module's own code, and of a run's top-level statements.
const ModuleName = "<module>"

// Code is the code object of a function, class or module.
type Code struct {
	File, Name uint64 // names
	First      int64  // line
}

// Table holds the definitions of a recording. It only grows.
type Table struct {
	Recorder string
	names    []string
	codes    []Code
	threads  []string          // names of threads and asyncio tasks
	numbers  map[string]uint64 // of names

	statements     []string
	statementBytes int
}

// Name returns the text of a name, and "" for 0.
func (t *Table) Name(n uint64) string {
	if n == 0 || n > uint64(len(t.names)) {
		return ""
	}
	return t.names[n-1]
}

// NumberOf returns the number of a name, and 0 if the recording does not define it.
func (t *Table) NumberOf(name string) uint64 { return t.numbers[name] }

// Code returns a code object by its number.
func (t *Table) Code(n uint64) Code {
	if n == 0 || n > uint64(len(t.codes)) {
		return Code{}
	}
	return t.codes[n-1]
}

// Codes returns how many code objects there are; their numbers begin with 1.
func (t *Table) Codes() int { return len(t.codes) }

// FunctionName returns the name of a code object's function.
func (t *Table) FunctionName(code uint64) string { return t.Name(t.Code(code).Name) }

// ThreadName returns the name of a thread or asyncio task by its number.
func (t *Table) ThreadName(n uint64) string {
	if n == 0 || n > uint64(len(t.threads)) {
		return ""
	}
	return t.threads[n-1]
}

// Statements returns the descriptions of the program's statements, by number minus 1. A guest can forge them.
func (t *Table) Statements() []string { return t.statements }

// ProgramFile returns the file that the recorded program was compiled as, and "" before the first code record.
func (t *Table) ProgramFile() string { return t.Name(t.Code(1).File) }

// define applies a record that makes a definition. It returns false for other records.
func (t *Table) define(rec *Record) (bool, error) {
	switch rec.Kind {
	case KindHead:
		if rec.Number != FormatVersion {
			return true, fmt.Errorf("%w: version %d, want %d", ErrVersion, rec.Number, FormatVersion)
		}
		if t.Recorder != "" || rec.Text == "" {
			return true, fmt.Errorf("a second head record, or one without a recorder: %q", rec.Text)
		}
		t.Recorder = rec.Text
	case KindName:
		if len(t.names) >= maxDefinitions {
			return true, fmt.Errorf("more than %d names", maxDefinitions)
		}
		t.names = append(t.names, rec.Text)
		if t.numbers == nil {
			t.numbers = map[string]uint64{}
		}
		t.numbers[rec.Text] = uint64(len(t.names))
	case KindCode:
		if len(t.codes) >= maxDefinitions || !t.isName(rec.File) || !t.isName(rec.Name) || rec.Number > 1<<31 {
			return true, fmt.Errorf("invalid code record %d: names %d and %d", len(t.codes)+1, rec.File, rec.Name)
		}
		t.codes = append(t.codes, Code{File: rec.File, Name: rec.Name, First: int64(rec.Number)})
	case KindThread:
		if len(t.threads) >= maxDefinitions || rec.Number < 1 || rec.Number > threadTypeTask ||
			rec.Parent > uint64(len(t.threads)) {
			return true, fmt.Errorf("invalid thread record %d: type %d, parent %d", len(t.threads)+1, rec.Number,
				rec.Parent)
		}
		t.threads = append(t.threads, rec.Text)
	case KindStatement:
		t.statementBytes += len(rec.Text)
		if len(t.statements) >= maxDefinitions || t.statementBytes > maxStatementBytes {
			return true, fmt.Errorf("more than %d statements, or %d bytes of them", maxDefinitions, maxStatementBytes)
		}
		t.statements = append(t.statements, rec.Text)
	default:
		return false, nil
	}
	return true, nil
}

func (t *Table) isName(n uint64) bool { return n > 0 && n <= uint64(len(t.names)) }

// defineAll applies encoded records, which must all make definitions.
func (t *Table) defineAll(b []byte) error {
	var rec Record
	for len(b) > 0 {
		size, err := decodeRecord(b, &rec, nil)
		if err != nil {
			return err
		}
		if defined, err := t.define(&rec); err != nil || !defined {
			return errors.Join(err, fmt.Errorf("unexpected %s record among the definitions", rec.Kind))
		}
		b = b[size:]
	}
	return nil
}
