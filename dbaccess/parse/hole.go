package parse

import (
	"strconv"
	"strings"

	pg_query "github.com/pganalyze/pg_query_go/v5"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// hole is a part of a user's statement that is put into a template: its text, and the trees that the text has.
type hole struct {
	text  string
	nodes []*pg_query.Node     // one expression, or a list of expressions, targets or items of FROM
	query *pg_query.SelectStmt // a query, in place of nodes
}

// exprHole returns a hole for an expression. Its text has parentheses.
func exprHole(text string, node *pg_query.Node) hole {
	return hole{text: "(" + text + ")", nodes: []*pg_query.Node{node}}
}

// listHole returns a hole for a list.
func listHole(text string, nodes []*pg_query.Node) hole { return hole{text: text, nodes: nodes} }

// queryHole returns a hole for a query, which the template has in parentheses.
func queryHole(q derivedQuery) hole { return hole{text: q.text, query: q.node} }

// derivedQuery is a query that is made of parts of a statement: its text, and the tree that the text is meant to have.
type derivedQuery struct {
	text string
	node *pg_query.SelectStmt
}

// fill puts holes into a template, a query of this package in which @0 stands for the first hole. A hole for a query
// stands alone in parentheses: (@0).
func fill(template string, holes ...hole) derivedQuery {
	text, skeleton := template, template
	for i := len(holes) - 1; i >= 0; i-- { // @12 before @1
		mark := "@" + strconv.Itoa(i)
		name := quoteName(holeName(i))
		if holes[i].query != nil {
			skeleton = strings.ReplaceAll(skeleton, "("+mark+")", "(SELECT "+name+")")
		} else {
			skeleton = strings.ReplaceAll(skeleton, mark, name)
		}
	}
	pieces := strings.Split(text, "@")
	var out strings.Builder
	out.WriteString(pieces[0])
	for _, piece := range pieces[1:] { // the text of a hole may have @, so each mark is replaced once
		digits := len(piece) - len(strings.TrimLeft(piece, "0123456789"))
		n, err := strconv.Atoi(piece[:digits])
		if err != nil || n >= len(holes) { // a name with @
			out.WriteString("@" + piece)
			continue
		}
		out.WriteString(holes[n].text)
		out.WriteString(piece[digits:])
	}
	node := parsedSelect(skeleton)
	fillTree(node.ProtoReflect(), holes)
	return derivedQuery{out.String(), node}
}

func holeName(i int) string { return "glasshouse hole " + strconv.Itoa(i) }

// holeOf returns the hole that a node stands for, or nil.
func holeOf(node *pg_query.Node, holes []hole) *hole {
	name := ""
	if target := node.GetResTarget(); target != nil && target.Name == "" {
		node = target.Val
	}
	switch n := node.GetNode().(type) {
	case *pg_query.Node_ColumnRef:
		if len(n.ColumnRef.Fields) == 1 {
			name = n.ColumnRef.Fields[0].GetString_().GetSval()
		}
	case *pg_query.Node_RangeVar:
		name = n.RangeVar.Relname
	case *pg_query.Node_SelectStmt:
		if s := n.SelectStmt; len(s.TargetList) == 1 && len(s.FromClause) == 0 {
			if h := holeOf(s.TargetList[0], holes); h != nil && h.query != nil {
				return h
			}
		}
		return nil
	}
	if name == "" {
		return nil
	}
	for i := range holes {
		if name == holeName(i) {
			return &holes[i]
		}
	}
	return nil
}

// fillTree replaces the nodes that stand for holes.
func fillTree(m protoreflect.Message, holes []hole) {
	m.Range(func(field protoreflect.FieldDescriptor, value protoreflect.Value) bool {
		switch {
		case field.Kind() != protoreflect.MessageKind:
		case field.IsList():
			list := value.List()
			filled := make([]protoreflect.Message, 0, list.Len())
			for i := range list.Len() {
				item := list.Get(i).Message()
				if node, ok := item.Interface().(*pg_query.Node); ok {
					if h := holeOf(node, holes); h != nil && h.query == nil {
						isTarget := node.GetResTarget() != nil
						for _, n := range h.nodes {
							n = proto.CloneOf(n)
							if isTarget && n.GetResTarget() == nil {
								n = pg_query.MakeResTargetNodeWithVal(n, -1)
							}
							filled = append(filled, n.ProtoReflect())
						}
						continue
					}
				}
				fillTree(item, holes)
				filled = append(filled, item)
			}
			list.Truncate(0)
			for _, item := range filled {
				list.Append(protoreflect.ValueOfMessage(item))
			}
		default:
			if node, ok := value.Message().Interface().(*pg_query.Node); ok && node.GetResTarget() == nil {
				if h := holeOf(node, holes); h != nil {
					if h.query != nil {
						node.Node = &pg_query.Node_SelectStmt{SelectStmt: proto.CloneOf(h.query)}
					} else if len(h.nodes) == 1 {
						node.Node = proto.CloneOf(h.nodes[0]).Node
					}
					return true
				}
			}
			fillTree(value.Message(), holes)
		}
		return true
	})
}
