package supervisor

import "time"

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// megabytes converts bytes to MiB, rounded down to hundredths.
func megabytes(bytes int64) float64 { return float64(bytes*100>>20) / 100 }
