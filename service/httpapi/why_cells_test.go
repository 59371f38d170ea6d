package httpapi_test

import (
	"net/url"
	"strings"
	"testing"

	"glasshouse/sandbox"
)

const cellProgram = `import pandas as pd
orders = pd.DataFrame(db_query("SELECT n, n % 4 AS shop, n * 10 AS cents FROM generate_series(1, 40) n ORDER BY n"))
shops = pd.DataFrame({"shop": [0, 1, 2], "city": ["Oslo", "Rome", "Oslo"]})
big = orders[orders["n"] > 20]
joined = big.merge(shops, on="shop")
joined["euros"] = joined["cents"] / 100
t = joined.groupby("city").agg(total=("euros", "sum"))
rows = t.reset_index().to_dict("records")`

// A cell is explained by the rows behind it.
func TestWhyFollowsACell(t *testing.T) {
	t.Parallel()
	c := newUser(t, sandbox.RoleAgent)
	execution := c.recorded(t, c.create(t, nil), cellProgram)
	for _, path := range []string{"t.loc['Oslo','total']", "rows[0]['total']"} {
		y := c.why(t, execution, "name="+url.QueryEscape(path))
		if y.Cell == nil || y.Value != "31.0" || y.Cell.Value != "31.0" || y.Cell.Ends != "" {
			t.Fatalf("%s: got the cell %+v of %q, want 31.0 in\n%s", path, y.Cell, y.Value, y.Text)
		}
		t.Logf("%s", y.Text)
		of := map[int64]sandbox.CellStep{}
		for _, step := range y.Cell.From {
			of[step.Line] = step
		}
		// n = 22, 24, ... 40 are of the shops 0 and 2 in Oslo.
		if got := of[7]; got.TotalRows != 10 || got.Of != 15 || got.TotalCells != 10 {
			t.Errorf("%s: got %+v, want 10 of 15 rows of the group", path, got)
		}
		if got := of[4]; got.TotalRows != 10 || got.Of != 40 || got.Rows[0] != 21 {
			t.Errorf("%s: got %+v, want 10 of 40 rows, the first at 21", path, got)
		}
		if !strings.Contains(y.Text, "10 of 15") || len(y.Text) > 600*5 {
			t.Errorf("%s: got\n%s\nwant the rows", path, y.Text)
		}
	}
	y := c.why(t, execution, "name="+url.QueryEscape("t.loc['Bonn','total']"))
	if y.Cell == nil || y.Cell.Value != "" || !strings.Contains(y.Cell.Ends, "is not in the table") {
		t.Errorf("got %+v, want that there is no such cell", y.Cell)
	}
	if y = c.why(t, execution, "name=t"); y.Cell != nil {
		t.Errorf("got the cell %+v of a whole table, want none", y.Cell)
	}
}
