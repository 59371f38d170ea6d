module glasshouse/cmd/bench

go 1.26.0
