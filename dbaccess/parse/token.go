package parse

import (
	pg_query "github.com/pganalyze/pg_query_go/v5"
	"google.golang.org/protobuf/encoding/protowire"
)

// token is a token of the lexer: bytes start to end. The library's own type allocates a message per
// token, which takes as long as lexing.
type token struct {
	start, end int
	kind       pg_query.Token
	keyword    bool
}

// decodeTokens decodes a pg_query.ScanResult from protobuf.
func decodeTokens(scanned []byte) ([]token, error) {
	tokens := make([]token, 0, len(scanned)/8)
	err := forEachField(scanned, func(number protowire.Number, _ uint64, body []byte) error {
		if number != 2 { // field "tokens"
			return nil
		}
		var t token
		err := forEachField(body, func(number protowire.Number, value uint64, _ []byte) error {
			switch number {
			case 1:
				t.start = int(value)
			case 2:
				t.end = int(value)
			case 4:
				t.kind = pg_query.Token(value)
			case 5:
				t.keyword = pg_query.KeywordKind(value) != pg_query.KeywordKind_NO_KEYWORD
			}
			return nil
		})
		tokens = append(tokens, t)
		return err
	})
	return tokens, err
}

// forEachField calls take with each field of a message: a number or bytes.

func forEachField(message []byte, take func(number protowire.Number, value uint64, body []byte) error) error {
	for len(message) > 0 {
		number, kind, n := protowire.ConsumeTag(message)
		if n < 0 {
			return protowire.ParseError(n)
		}
		message = message[n:]
		var value uint64
		var body []byte
		switch kind {
		case protowire.VarintType:
			value, n = protowire.ConsumeVarint(message)
		case protowire.BytesType:
			body, n = protowire.ConsumeBytes(message)
		default:
			n = protowire.ConsumeFieldValue(number, kind, message)
		}
		if n < 0 {
			return protowire.ParseError(n)
		}
		message = message[n:]
		if err := take(number, value, body); err != nil {
			return err
		}
	}
	return nil
}
