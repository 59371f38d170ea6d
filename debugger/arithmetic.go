package debugger

import (
	"errors"
	"fmt"
	"math"
	"math/big"
	"strconv"
)

const maxBits = 1 << 16 // of an integer

func parseNumber(text string) (any, bool) {
	if n, ok := new(big.Int).SetString(text, 10); ok {
		return n, true
	}
	f, err := strconv.ParseFloat(text, 64)
	return f, err == nil
}

func number(v any) (*big.Int, bool) {
	switch v := v.(type) {
	case *big.Int:
		return v, true
	case bool:
		return new(big.Int).SetUint64(bit(v)), true
	}
	return nil, false
}

func double64(v any) (float64, bool) {
	if f, ok := v.(float64); ok {
		return f, true
	}
	if n, ok := number(v); ok {
		f, _ := new(big.Float).SetInt(n).Float64()
		return f, true
	}
	return 0, false
}

func arithmetic(op string, a, b any) (any, error) {
	if x, ok := a.(string); ok && op == "+" {
		if y, ok := b.(string); ok && len(x)+len(y) < maxText {
			return x + y, nil
		}
	}
	x, ints := number(a)
	y, also := number(b)
	if ints && also && op != "/" {
		if x.BitLen()+y.BitLen() > maxBits {
			return nil, errors.New("the numbers are too large")
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
			return nil, errors.New("division by zero")
		}
		q, m := new(big.Int).QuoRem(x, y, new(big.Int))
		if m.Sign() != 0 && m.Sign() != y.Sign() { // Python rounds down
			q.Sub(q, big.NewInt(1))
			m.Add(m, y)
		}
		if op == "%" {
			return m, nil
		}
		return q, nil
	}
	f, ok := double64(a)
	g, fine := double64(b)
	if !ok || !fine {
		return nil, fmt.Errorf("%s is for numbers here", op)
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
		return nil, errors.New("division by zero")
	}
	switch op {
	case "/":
		return f / g, nil
	case "//":
		return math.Floor(f / g), nil
	}
	return f - g*math.Floor(f/g), nil
}
