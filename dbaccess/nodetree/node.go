package nodetree

import (
	"strconv"
	"strings"
)

// Node is a node of a tree, {NAME :field value ...}. A nil Node has no fields.
type Node struct {
	Name   string // such as QUERY
	fields []field
}

// field is a field of a node. A value that is neither a list nor a node is one word, or several of them: a constant, 4
// [ 1 0 0 0 ], or a set, (b 8 9). The first word has a place of its own, because most values are one.
type field struct {
	name, word string
	more       []string
	nodes      []*Node
}

// Parse returns the nodes of a tree that are in no other node, in the order of the tree. A tree that is cut off or
// malformed has the nodes that can be read. Lists in lists are read as one list.
func Parse(text string) []*Node {
	var roots []*Node
	var open []*Node // the last one is the node whose fields come
	last := ""       // the word before
	for word := range nodeWords(text) {
		switch {
		case last == "{":
			open[len(open)-1].Name = word
		case word == "{":
			n := &Node{}
			if len(open) == 0 {
				roots = append(roots, n)
			} else if f := open[len(open)-1].last(); f != nil {
				f.nodes = append(f.nodes, n)
			}
			open = append(open, n)
		case word == "}":
			open = open[:max(len(open)-1, 0)]
		case len(open) == 0 || word == "(" || word == ")":
		case strings.HasPrefix(word, ":") && !strings.HasPrefix(last, ":"): // a value may begin with a colon, too
			n := open[len(open)-1]
			if n.fields == nil {
				n.fields = make([]field, 0, 12)
			}
			n.fields = append(n.fields, field{name: word[1:]})
		default:
			if f := open[len(open)-1].last(); f != nil && f.word == "" {
				f.word = word
			} else if f != nil {
				f.more = append(f.more, word)
			}
			word = "" // the next word with a colon is a field
		}
		last = word
	}
	return roots
}

func (n *Node) last() *field {
	if len(n.fields) == 0 {
		return nil
	}
	return &n.fields[len(n.fields)-1]
}

func (n *Node) field(name string) *field {
	if n != nil {
		for i := range n.fields {
			if n.fields[i].name == name {
				return &n.fields[i]
			}
		}
	}
	return &field{}
}

// Nodes returns the nodes of a field: those of a list, or the one that is its value.
func (n *Node) Nodes(name string) []*Node { return n.field(name).nodes }

// Node returns the node that is the value of a field; nil: it has none.
func (n *Node) Node(name string) *Node {
	if nodes := n.Nodes(name); len(nodes) > 0 {
		return nodes[0]
	}
	return nil
}

// Word returns the value of a field that is a word, or "".
func (n *Node) Word(name string) string { return n.field(name).word }

// Int returns the value of a field that is an integer, or 0.
func (n *Node) Int(name string) int {
	i, _ := strconv.Atoi(n.Word(name))
	return i
}

// Set returns the members of a set of integers, (b 8 9).
func (n *Node) Set(name string) (members []int) {
	for _, word := range n.field(name).more { // after b
		if i, err := strconv.Atoi(word); err == nil {
			members = append(members, i)
		}
	}
	return members
}

// Children returns the nodes of all fields but those named.
func (n *Node) Children(but ...string) (all []*Node) {
	for _, f := range n.fields {
		skipped := false
		for _, name := range but {
			skipped = skipped || f.name == name
		}
		if !skipped {
			all = append(all, f.nodes...)
		}
	}
	return all
}
