package history

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/klauspost/compress/zstd"

	"glasshouse/sandbox/inputlog"
)

const (
	// maxTextField is the size in JSON of the longest output: max_output_size is at most 16 MiB, and JSON has six bytes
	// for a control character.
	maxTextField = 6<<24 + 1<<20
	maxJSONField = 64 << 20 // of a result or a context; a guest's result has at most 21 MiB
	maxListField = 36 << 20 // of outputs, notes or artifacts; a guest's outputs have at most 16 MiB, and so do notes
	maxException = 8 << 20
	maxRestField = 256 << 20 // of the others: statements have at most 16 MiB of texts

	maxDecodedItems = 512 << 20 // bytes that the items of lists may take in memory
	objectCost      = 400       // bytes of the largest struct of a list
	valueCost       = 16
	memberCost      = 8
	countedDepth    = 4 // values below it stay JSON

	maxInputsText = 64 << 20 // bytes of a decoded input log
)

// maxFields has the largest size in JSON of the fields of a record, where it is not maxRestField.
var maxFields = map[string]int{
	"code": maxTextField, "stdout": maxTextField, "stderr": maxTextField, "error": maxTextField,
	"result": maxJSONField, "context": maxJSONField, "exception": maxException,
	"outputs": maxListField, "debug_info": maxListField, "notes": maxListField, "artifacts": maxListField,
	"artifact_map": maxListField, "connections": maxListField, "edits": maxListField, "exact": maxListField,
}

// plainFields are the fields whose values are texts or stay JSON, so they take no more memory than their text.
var plainFields = map[string]bool{
	"code": true, "stdout": true, "stderr": true, "error": true, "result": true, "context": true,
}

// checkSize returns an error for a record that no service could have written because of its size, or that would take
// much more memory when it is decoded than its text: the items of lists become structs, so three bytes of "{}," take
// hundreds. It reads valid JSON of an unknown source, in little memory in addition to the text.
func checkSize(record []byte) error {
	in := bytes.NewBuffer(record) // the decoder does not copy it
	d := jsontext.NewDecoder(in, jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	if _, err := d.ReadToken(); err != nil {
		return err
	}
	cost := 0
	for d.PeekKind() == '"' {
		token, err := d.ReadToken()
		if err != nil {
			return err
		}
		name := token.String()
		limit, isKnown := maxFields[name]
		if !isKnown {
			limit = maxRestField
		}
		start := d.InputOffset()
		if plainFields[name] {
			err = d.SkipValue()
		} else {
			err = addCost(d, &cost)
		}
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		if size := d.InputOffset() - start; size > int64(limit) {
			return fmt.Errorf("%.40q has %d bytes; it may have %d", name, size, limit)
		}
	}
	return nil
}

// addCost reads a value and adds what its items take in memory.
func addCost(d *jsontext.Decoder, cost *int) error {
	for base := d.StackDepth(); ; {
		kind := d.PeekKind()
		var err error
		if (kind == '{' || kind == '[') && d.StackDepth() >= countedDepth {
			*cost += objectCost
			err = d.SkipValue()
		} else {
			switch kind {
			case '{', '[':
				*cost += objectCost
			case '}', ']':
			default:
				if parent, _ := d.StackIndex(d.StackDepth()); parent == '[' {
					*cost += valueCost
				} else {
					*cost += memberCost
				}
			}
			_, err = d.ReadToken()
		}
		if err != nil {
			return err
		}
		if *cost > maxDecodedItems {
			return fmt.Errorf("its lists would take more than %d MiB of memory", maxDecodedItems>>20)
		}
		if d.StackDepth() <= base {
			return nil
		}
	}
}

// checkInputs returns an error for an input log that cannot be decoded, or whose requests would take much more memory
// than their text: some kilobytes of zstd unpack to millions of "{}".
func checkInputs(log []byte) error {
	unzip, err := zstd.NewReader(bytes.NewReader(log), zstd.WithDecoderConcurrency(1),
		zstd.WithDecoderMaxMemory(maxInputsText))
	if err != nil {
		return err
	}
	defer unzip.Close()
	d := jsontext.NewDecoder(io.LimitReader(unzip, maxInputsText), jsontext.AllowDuplicateNames(true),
		jsontext.AllowInvalidUTF8(true))
	cost := 0
	if err := addCost(d, &cost); err != nil {
		return fmt.Errorf("decode an input log: %w", err)
	}
	_, err = inputlog.Decode(log)
	return err
}
