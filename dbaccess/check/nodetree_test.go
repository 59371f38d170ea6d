package check

import (
	"reflect"
	"testing"
)

// The words of a tree are PostgreSQL's: names in it may look like its fields and brackets.
func TestReadNodeTree(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]treeObjects{
		"":   {},
		"<>": {},
		`{FUNCEXPR :funcid 20 :funcresulttype 25 :funcretset false :funcvariadic false :funcformat 0 :args <>}`: {
			functions: []uint32{20}, types: []uint32{25}},
		`{FUNCEXPR :funcid 20 :funcresulttype 0 :funcformat 2 :args ({AGGREF :aggfnoid 30 :aggtype 23})}`: {
			casts: []uint32{20}, functions: []uint32{30}},
		`({OPEXPR :opno 96 :opfuncid 65} {ROWCOMPAREEXPR :rctype 1 :opnos (o 97 98) :opfamilies (o 1 2) :largs <>})`: {
			operators: []uint32{96, 97, 98}},
		`{TARGETENTRY :resname :opno :resno 1} {RTE :relid 1259}`:                             {relations: []uint32{1259}},
		`{ALIAS :aliasname \{OPEXPR\ :opno\ 96} {ALIAS :aliasname :funcid} {X :opno 7`:        {operators: []uint32{7}},
		`{CONST :consttype 23 :constvalue 4 [ 96 0 0 0 ]} {COERCETODOMAIN :resulttype 16400}`: {types: []uint32{23, 16400}},
		`:rowMarks ({ROWMARKCLAUSE :rti 1})`:                                                  {locksRows: true},
		`{ALIAS :aliasname ROWMARKCLAUSE}`:                                                    {},
		"\\":                                                                                  {},
		"{RTE :relid 99999999999}":                                                            {},
	} {
		if got := readNodeTree(text); !reflect.DeepEqual(got, want) {
			t.Errorf("%s: got %+v, want %+v", text, got, want)
		}
	}
}
