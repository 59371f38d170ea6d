package history

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"glasshouse/sandbox"
)

// order is the order of one list. The values of its columns are the place of an item, and a cursor has the name of the
// list and the place of the last item of a page. So a cursor works even when that item is erased, and no other list
// accepts it.
type order struct {
	list    string   // the name of the list, as in an error
	columns []string // of the statement
	types   []string // of the columns: timestamptz, float8, bigint, int or text
}

// cursor returns the cursor of a place.
func (o order) cursor(place ...any) (string, error) {
	texts := []string{o.list}
	for _, value := range place {
		if at, ok := value.(time.Time); ok {
			value = at.UTC().Truncate(time.Microsecond).Format(time.RFC3339Nano) // as exact as PostgreSQL's columns
		}
		texts = append(texts, fmt.Sprint(value))
	}
	text, err := json.Marshal(texts)
	return base64.RawURLEncoding.EncodeToString(text), err
}

// addCursor adds the condition that rows follow a cursor where the last ones come first.
func (o order) addCursor(c *conditions, cursor string) error {
	place, err := o.place(cursor)
	if err != nil {
		return err
	}
	var values []string
	for _, value := range place {
		c.args = append(c.args, value)
		values = append(values, fmt.Sprintf("$%d", len(c.args)))
	}
	c.clauses = append(c.clauses,
		fmt.Sprintf("(%s) < (%s)", strings.Join(o.columns, ", "), strings.Join(values, ", ")))
	return nil
}

// place returns the place of a cursor, as arguments of a statement. It returns FaultInvalid if the cursor is not one
// of this list.
func (o order) place(cursor string) ([]any, error) {
	const remedy = "pass the value of next of the previous page, or leave after out to get the first page"
	var texts []string
	text, err := base64.RawURLEncoding.DecodeString(cursor)
	if err == nil {
		err = json.Unmarshal(text, &texts)
	}
	if err == nil && len(texts) > 0 && texts[0] != o.list {
		return nil, invalidCursor("is the cursor of another list, not of " + o.list + "; " + remedy)
	}
	if err != nil || len(texts) != 1+len(o.types) {
		return nil, invalidCursor("is not a cursor; " + remedy)
	}
	values := make([]any, len(o.types))
	for n, text := range texts[1:] {
		if values[n], err = placeValue(o.types[n], text); err != nil {
			return nil, invalidCursor("is not a cursor; " + remedy)
		}
	}
	return values, nil
}

// placeValue returns the value with a text and a type of PostgreSQL.
func placeValue(kind, text string) (any, error) {
	switch kind {
	case "timestamptz":
		at, err := time.Parse(time.RFC3339Nano, text)
		if err == nil && at.UTC().Year() < 1 {
			err = strconv.ErrRange // PostgreSQL has no year 0
		}
		return at, err
	case "float8":
		return strconv.ParseFloat(text, 64)
	case "bigint":
		return strconv.ParseInt(text, 10, 64)
	case "int":
		return strconv.ParseInt(text, 10, 32)
	}
	return clean(text), nil
}

func invalidCursor(detail string) error {
	return &sandbox.Error{Fault: sandbox.FaultInvalid, Field: "after", Detail: detail}
}
