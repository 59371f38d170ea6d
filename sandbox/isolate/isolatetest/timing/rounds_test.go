//go:build !nightly

package timing

// floodRounds is how often a flood of TestFloodsKeepMemoryFlat repeats its message.
const floodRounds = 3000
