package limit

import "math"

// niceStep is the ratio of the weights that the kernel gives to two adjacent nice values.
const niceStep = 1.25

// Nice returns the nice value with about 1/n of the weight of the value 0, so that n processes with it get as much CPU
// time as one without. n is at least 1.
func Nice(n int) int {
	return min(int(math.Round(math.Log(float64(n))/math.Log(niceStep))), 19)
}
