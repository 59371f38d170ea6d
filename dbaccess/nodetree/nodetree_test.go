package nodetree

import (
	"reflect"
	"testing"
)

// The words of a tree are PostgreSQL's: names in it may look like its fields and brackets.
func TestRead(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]Objects{
		"":   {},
		"<>": {},
		`{FUNCEXPR :funcid 20 :funcresulttype 25 :funcretset false :funcvariadic false :funcformat 0 :args <>}`: {
			Functions: []uint32{20}, Types: []uint32{25}},
		`{FUNCEXPR :funcid 20 :funcresulttype 0 :funcformat 2 :args ({AGGREF :aggfnoid 30 :aggtype 23})}`: {
			Casts: []uint32{20}, Functions: []uint32{30}, Types: []uint32{23}},
		`:funccoltypes (o 23 16400) :funccoltypmods (o -1 5)} {TABLEFUNC :coltypes (o 25)`: {
			Types: []uint32{23, 16400, 25}},
		`({OPEXPR :opno 96 :opfuncid 65} {ROWCOMPAREEXPR :rctype 1 :opnos (o 97 98) :opfamilies (o 1 2) :largs <>})`: {
			Operators: []uint32{96, 97, 98}},
		`{TARGETENTRY :resname :opno :r 1} {RTE :relid 1259}`:                          {Relations: []uint32{1259}},
		`{ALIAS :aliasname \{OPEXPR\ :opno\ 96} {ALIAS :aliasname :funcid} {X :opno 7`: {Operators: []uint32{7}},
		`{CONST :consttype 23 :constvalue 4 [ 96 0 0 0 ]} {X :resulttype 16400}`:       {Types: []uint32{23, 16400}},
		`:rowMarks ({ROWMARKCLAUSE :rti 1})`:                                           {LocksRows: true},
		`{ALIAS :aliasname ROWMARKCLAUSE}`:                                             {},
		"{FUNCEXPR :funcid 20 :funcresulttype\n\t25 :funcretset false\n\t:funcformat\n 0}": { // as logs break lines
			Functions: []uint32{20}, Types: []uint32{25}},
		"\\":                       {},
		"{RTE :relid 99999999999}": {},
	} {
		if got := Read(text); !reflect.DeepEqual(got, want) {
			t.Errorf("%s: got %+v, want %+v", text, got, want)
		}
	}
}

func TestParse(t *testing.T) {
	t.Parallel()
	roots := Parse("({QUERY :commandType 1 :cteList <> :rtable ({RTE :alias <> " +
		":eref {ALIAS :aliasname u :colnames (\"id\" \"a b\")} :relid\n1259 :selectedCols (b 8 12)} {RTE :relid 7}) " +
		":targetList ({TARGETENTRY :expr {CONST :consttype 23 :constvalue 4 [ 1 0 0 0 ]} :resname :opno :resno 1}) " +
		":stmt_len 0} {SECOND})")
	if len(roots) != 2 || roots[0].Name != "QUERY" || roots[1].Name != "SECOND" {
		t.Fatalf("got %d roots, want QUERY and SECOND", len(roots))
	}
	q := roots[0]
	items, target := q.Nodes("rtable"), q.Node("targetList")
	if len(items) != 2 || items[0].Int("relid") != 1259 || items[1].Int("relid") != 7 ||
		!reflect.DeepEqual(items[0].Set("selectedCols"), []int{8, 12}) || items[1].Set("selectedCols") != nil ||
		items[0].Node("eref").Word("aliasname") != "u" {
		t.Errorf("got the items %+v", items)
	}
	if target.Word("resname") != ":opno" || target.Int("resno") != 1 || target.Node("expr").Int("consttype") != 23 {
		t.Errorf("got the target %+v", target)
	}
	if q.Int("commandType") != 1 || q.Node("cteList") != nil || q.Word("none") != "" || q.Int("none") != 0 {
		t.Errorf("got the query %+v", q)
	}
	if got := len(q.Children("targetList")); got != 2 {
		t.Errorf("got %d children without the target list, want 2", got)
	}
	for _, cut := range []string{"", "<>", "{", "}", "{A", "{A :b", "{A :b {C", ") } :x 1", "{A :b (1 2", ":a {B}"} {
		Parse(cut) // must not panic
	}
}
