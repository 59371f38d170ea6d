package parse

import (
	"slices"
	"strings"

	pg_query "github.com/pganalyze/pg_query_go/v5"
	"github.com/pganalyze/pg_query_go/v5/parser"
	"google.golang.org/protobuf/encoding/protowire"
)

// Token is a token of the lexer: the bytes from Start to End. The library's own type allocates a message per
// token, which takes as long as lexing.
type Token struct {
	Start, End int
	Kind       pg_query.Token
	isKeyword  bool
}

func (t Token) isComment() bool {
	return t.Kind == pg_query.Token_SQL_COMMENT || t.Kind == pg_query.Token_C_COMMENT
}

// Scan returns the tokens of a text without its comments. A child must have parsed the text: the lexer takes quadratic
// time for some texts that a child refuses.
func Scan(sql string) ([]Token, error) {
	scanned, err := parser.ScanToProtobuf(sql)
	if err != nil {
		return nil, err
	}
	tokens, err := decodeTokens(scanned)
	end := len(sql)
	for i := len(tokens) - 1; i >= 0; i-- { // the library's end of U&"name" is that of U
		t := &tokens[i]
		t.End, end = t.Start+len(strings.TrimRight(sql[t.Start:end], " \t\n\r\f\v")), t.Start
	}
	return slices.DeleteFunc(tokens, Token.isComment), err
}

// decodeTokens decodes a pg_query.ScanResult from protobuf.
func decodeTokens(scanned []byte) ([]Token, error) {
	tokens := make([]Token, 0, len(scanned)/8)
	err := forEachField(scanned, func(number protowire.Number, _ uint64, body []byte) error {
		if number != 2 { // field "tokens"
			return nil
		}
		var t Token
		err := forEachField(body, func(number protowire.Number, value uint64, _ []byte) error {
			switch number {
			case 1:
				t.Start = int(value)
			case 2:
				t.End = int(value)
			case 4:
				t.Kind = pg_query.Token(value)
			case 5:
				t.isKeyword = pg_query.KeywordKind(value) != pg_query.KeywordKind_NO_KEYWORD
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
