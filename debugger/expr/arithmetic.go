package expr

import (
	"errors"
	"fmt"
	"math"
	"math/big"
)

// Limits of computed values.
const (
	maxIntBits     = 1 << 16
	maxStringBytes = 64 << 10
)

var errDivisionByZero = errors.New("division by zero")

// toInt returns v as an integer, if it is an int or a bool.
func toInt(v any) (*big.Int, bool) {
	switch v := v.(type) {
	case *big.Int:
		return v, true
	case bool:
		if v {
			return big.NewInt(1), true
		}
		return new(big.Int), true
	}
	return nil, false
}

// toFloat returns v as a float, if it is a number.
func toFloat(v any) (float64, bool) {
	if f, ok := v.(float64); ok {
		return f, true
	}
	if n, ok := toInt(v); ok {
		f, _ := new(big.Float).SetInt(n).Float64()
		return f, true
	}
	return 0, false
}

// arithmeticCost returns how many operations a binary operation counts for beyond the first: that of a multiplication
// of two large integers, which no other operation exceeds.
func arithmeticCost(a, b any) int {
	x, _ := a.(*big.Int)
	y, _ := b.(*big.Int)
	if x == nil || y == nil {
		return 0
	}
	return (x.BitLen() / 64) * (y.BitLen() / 64) / 256
}

// arithmetic computes a binary operation as Python does.
func arithmetic(op string, a, b any) (any, error) {
	if x, ok := a.(string); ok && op == "+" {
		if y, ok := b.(string); ok && len(x)+len(y) < maxStringBytes {
			return x + y, nil
		}
	}
	x, xIsInt := toInt(a)
	y, yIsInt := toInt(b)
	if xIsInt && yIsInt && op != "/" {
		return intArithmetic(op, x, y)
	}
	f, ok := toFloat(a)
	g, gIsNumber := toFloat(b)
	if !ok || !gIsNumber {
		return nil, fmt.Errorf("%s needs two numbers", op)
	}
	switch op {
	case "+":
		return f + g, nil
	case "-":
		return f - g, nil
	case "*":
		return f * g, nil
	}
	if g == 0 {
		return nil, errDivisionByZero
	}
	switch op {
	case "/":
		return f / g, nil
	case "//":
		return math.Floor(f / g), nil
	}
	return f - g*math.Floor(f/g), nil
}

func intArithmetic(op string, x, y *big.Int) (any, error) {
	if x.BitLen()+y.BitLen() > maxIntBits {
		return nil, fmt.Errorf("the integers have more than %d bits", maxIntBits)
	}
	switch op {
	case "+":
		return new(big.Int).Add(x, y), nil
	case "-":
		return new(big.Int).Sub(x, y), nil
	case "*":
		return new(big.Int).Mul(x, y), nil
	}
	if y.Sign() == 0 {
		return nil, errDivisionByZero
	}
	q, m := new(big.Int).QuoRem(x, y, new(big.Int))
	if m.Sign() != 0 && m.Sign() != y.Sign() { // Python rounds towards minus infinity
		q.Sub(q, big.NewInt(1))
		m.Add(m, y)
	}
	if op == "%" {
		return m, nil
	}
	return q, nil
}
