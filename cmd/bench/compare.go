package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"text/tabwriter"
	"time"
)

const (
	defaultPairs     = 20
	defaultSlowPairs = 8 // of rows whose samples take seconds
	maxCompareTime   = 60 * time.Second
)

// comparison is a row of two builds: the medians of old and new, and the ratios new/old of the pairs.
type comparison struct {
	measurement
	old, new float64
	ratios   []float64
	again    []float64 // of the second measurement, if the first was worse than the threshold
	err      error
}

// change returns by how many percent new is worse than old; negative if it is better.
func change(u unit, ratios []float64) float64 {
	ratio := median(ratios)
	if u.higherIsBetter {
		ratio = 1 / ratio
	}
	return 100 * (ratio - 1)
}

// worse reports whether the row is worse than the threshold in both of its measurements.
func (c *comparison) worse(threshold float64) bool {
	for _, list := range [][]float64{c.ratios, c.again} {
		if c.err != nil || list != nil && !clearlyWorse(c.unit, list, threshold) {
			return false
		}
	}
	return true
}

// clearlyWorse reports whether the median is worse than the threshold and three quarters of the pairs have a
// ratio that is worse than 1.
func clearlyWorse(u unit, list []float64, threshold float64) bool {
	better := 0.25 // quantile of the ratios: three quarters of the pairs have a worse ratio
	if u.higherIsBetter {
		better = 0.75
	}
	return change(u, list) > threshold && change(u, []float64{quantile(list, better)}) > 0
}

// compare measures two binaries in turn and prints the ratios. Its error has the number of worse rows.
func compare(ctx context.Context, o options) error {
	if o.old == "" {
		return errors.New("compare needs --old; ./scripts/bench compare REV builds the binary and sets it")
	}
	if o.oldPython == "" {
		o.oldPython = o.python
	}
	o.quick = true // the one row that depends on it has fewer runs
	rows, err := selectRows(o, strings.Split(o.suites, ","))
	if err != nil {
		return err
	}
	if o.best {
		best, err := readBest(bestText)
		if err != nil {
			return err
		}
		if rows = best.only(rows, o.oldName); len(rows) == 0 {
			progress("no row of these suites was best at %s", o.oldName)
			return nil
		}
	}
	progress("starting %s and the working tree", o.oldName)
	old, err := startGlasshouse(ctx, o.old, o.oldPython)
	if err != nil {
		return fmt.Errorf("%s: %w", o.oldName, err)
	}
	defer old.Close()
	new, err := startGlasshouse(ctx, o.binary, o.python)
	if err != nil {
		return err
	}
	defer new.Close()

	var results []comparison
	for _, m := range rows {
		if m.settings != "" || m.unit.label == wrongAnswers.label || m.peer != nil { // peers are compared by another suite
			continue
		}
		if ctx.Err() != nil {
			progress("stopped early: %v", context.Cause(ctx))
			break
		}
		c := comparison{measurement: m}
		progress("%s: %s", m.suite, m.name)
		if c.old, c.new, c.ratios, c.err = comparePairs(ctx, m, o.pairs, old, new); c.worse(o.threshold) {
			progress("%s: %s is %.0f %% worse; measuring it again", m.suite, m.name, change(m.unit, c.ratios))
			_, _, c.again, c.err = comparePairs(ctx, m, o.pairs, old, new)
		}
		results = append(results, c)
	}
	return printComparison(o, results)
}

// comparePairs returns the medians and the ratios new/old of a row.
func comparePairs(ctx context.Context, m measurement, n int, old, new *glasshouse) (oldMedian, newMedian float64, perPair []float64, err error) {
	if n == 0 {
		n = defaultPairs
		if m.samples <= fewSamples {
			n = defaultSlowPairs
		}
	}
	before, err := m.open(ctx, old)
	if err != nil {
		return 0, 0, nil, fmt.Errorf("old: %w", err)
	}
	defer before.end()
	after, err := m.open(ctx, new)
	if err != nil {
		return 0, 0, nil, fmt.Errorf("new: %w", err)
	}
	defer after.end()
	news, olds, err := inTurn(ctx, n, maxCompareTime, burst(after.sample), burst(before.sample), true)
	return median(olds), median(news), ratios(news, olds), err
}

// burst returns as one sample the median of the samples of 200 ms, at most 25. It keeps other load of the machine
// out of rows that take a millisecond.
func burst(sample sampleFunc) sampleFunc {
	return func() (float64, error) {
		var values []float64
		for end := time.Now().Add(200 * time.Millisecond); len(values) == 0 || len(values) < 25 && time.Now().Before(end); {
			value, err := sample()
			if err != nil {
				return 0, err
			}
			values = append(values, value)
		}
		return median(values), nil
	}
}

func printComparison(o options, results []comparison) error {
	out := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintf(out, "what\t%s\tnew\tnew/old\tmin–max\tpairs\t\n", o.oldName)
	worse, failed := 0, 0
	for _, c := range results {
		if c.err != nil {
			failed++
			fmt.Fprintf(out, "%s\t\t\t\t\t\tcould not be measured: %s\n", c.name, strings.ReplaceAll(c.err.Error(), "\n", " "))
			continue
		}
		verdict := ""
		switch {
		case c.worse(o.threshold):
			worse++
			verdict = fmt.Sprintf("WORSE; again %.2f (%.2f–%.2f)", median(c.again), quantile(c.again, 0), quantile(c.again, 1))
		case c.again != nil:
			verdict = fmt.Sprintf("again %.2f (%.2f–%.2f): not worse", median(c.again), quantile(c.again, 0), quantile(c.again, 1))
		case change(c.unit, c.ratios) < -o.threshold:
			verdict = "better: put the new revision into cmd/bench/best.txt"
		}
		figure := func(v float64) string { return fmt.Sprintf("%.*f %s", c.unit.digits, v, c.unit.label) }
		fmt.Fprintf(out, "%s\t%s\t%s\t%.2f\t%.2f–%.2f\t%d\t%s\n",
			c.name, figure(c.old), figure(c.new), median(c.ratios), quantile(c.ratios, 0), quantile(c.ratios, 1), len(c.ratios), verdict)
	}
	if err := out.Flush(); err != nil {
		return err
	}
	fmt.Println("\nRates (/s) are better if the ratio is above 1, all other rows if it is below.")
	switch {
	case worse > 0:
		return fmt.Errorf("%d of %d rows are more than %g %% worse than %s, even when measured again",
			worse, len(results), o.threshold, o.oldName)
	case failed > 0:
		return fmt.Errorf("%d of %d rows could not be measured", failed, len(results))
	}
	fmt.Printf("No row is more than %g %% worse than %s.\n", o.threshold, o.oldName)
	return nil
}
