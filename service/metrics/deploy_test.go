package metrics_test

import (
	"encoding/json"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"glasshouse/sandbox"
	"glasshouse/service/metrics"
)

var (
	exportedSeries = regexp.MustCompile(`(?m)^([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(.*)\})? \S+$`)
	labelValue     = regexp.MustCompile(`([a-z_]+)="((?:[^"\\]|\\.)*)"`)

	usedMetric   = regexp.MustCompile(`\b((?:glasshouse|go|process)_[a-z_]+)(?:\{([^}]*)\})?`)
	usedMatcher  = regexp.MustCompile(`([a-z_]+)(=~|!~|!=|=)"([^"]*)"`)
	usedGrouping = regexp.MustCompile(`\bby \(([^)]*)\)`)
	ruleExpr     = regexp.MustCompile(`(?m)^ +expr: (?:>-\n)?((?:.+\n)(?:          .+\n)*)`)
)

// exportedMetrics returns the values of the labels of each metric that a service exports, by metric and label.
func exportedMetrics(t *testing.T) map[string]map[string][]string {
	t.Helper()
	m := metrics.New("test")
	m.Watch(metrics.Sources{
		Sandboxes:     func() map[string]int { return map[string]int{"idle": 1} },
		PoolReady:     func() map[string]int { return map[string]int{"bare": 1} },
		History:       func() sandbox.HistoryStatus { return sandbox.HistoryStatus{} },
		PendingWrites: func() int { return 0 },
		LateCleanups:  func() map[string]int { return map[string]int{"process": 0} },
		Databases:     []string{"knowledge"},
	})
	for _, status := range []string{"refused", "failed", "cancelled", "captured"} {
		m.QueryEnded(&sandbox.Query{Database: "knowledge", Status: status})
	}
	m.RequestEnded("/executions", "GET", 200, 0, false)
	exported := map[string]map[string][]string{}
	for _, series := range exportedSeries.FindAllStringSubmatch(scrape(t, m), -1) {
		labels := exported[series[1]]
		if labels == nil {
			labels = map[string][]string{}
			exported[series[1]] = labels
		}
		for _, label := range labelValue.FindAllStringSubmatch(series[2], -1) {
			labels[label[1]] = append(labels[label[1]], label[2])
		}
	}
	return exported
}

// fromPrometheus are the labels that Prometheus adds to each series.
var fromPrometheus = []string{"instance", "job"}

// checkExpression requires that a service exports the metrics, the labels and the values of a PromQL expression.
func checkExpression(t *testing.T, exported map[string]map[string][]string, expression string) {
	t.Helper()
	known := slices.Clone(fromPrometheus)
	used := usedMetric.FindAllStringSubmatch(expression, -1)
	if len(used) == 0 && !strings.HasPrefix(expression, "up{") {
		t.Errorf("%s: found no metric of the service", expression)
	}
	for _, use := range used {
		labels, ok := exported[use[1]]
		if !ok {
			t.Errorf("%s: the service exports no metric %s", expression, use[1])
			continue
		}
		for label := range labels {
			known = append(known, label)
		}
		for _, matcher := range usedMatcher.FindAllStringSubmatch(use[2], -1) {
			label, value := matcher[1], matcher[3]
			if slices.Contains(fromPrometheus, label) {
				continue
			}
			pattern := regexp.QuoteMeta(value)
			if matcher[2] == "=~" {
				pattern = value
			}
			if !slices.ContainsFunc(labels[label], regexp.MustCompile("^(?:"+pattern+")$").MatchString) {
				t.Errorf("%s: no series of %s matches %s; the values of the label are %q", expression, use[1],
					matcher[0], labels[label])
			}
		}
	}
	for _, grouping := range usedGrouping.FindAllStringSubmatch(expression, -1) {
		for label := range strings.SplitSeq(grouping[1], ",") {
			if label = strings.TrimSpace(label); !slices.Contains(known, label) {
				t.Errorf("%s: no metric of the expression has the label %s", expression, label)
			}
		}
	}
	for _, pair := range []string{"()", "{}", "[]"} {
		if strings.Count(expression, pair[:1]) != strings.Count(expression, pair[1:]) {
			t.Errorf("%s: got unequal numbers of %q and %q", expression, pair[:1], pair[1:])
		}
	}
}

func TestDashboardUsesExportedMetrics(t *testing.T) {
	t.Parallel()
	exported := exportedMetrics(t)
	text, err := os.ReadFile("../../deploy/grafana/glasshouse.json")
	if err != nil {
		t.Fatal(err)
	}
	var dashboard struct {
		Panels []struct {
			Title   string
			Targets []struct{ Expr string }
		}
	}
	if err := json.Unmarshal(text, &dashboard); err != nil {
		t.Fatal(err)
	}
	shown := map[string]bool{}
	for _, panel := range dashboard.Panels {
		for _, target := range panel.Targets {
			checkExpression(t, exported, target.Expr)
			for _, use := range usedMetric.FindAllStringSubmatch(target.Expr, -1) {
				shown[use[1]] = true
			}
		}
	}
	for name := range exported {
		if base, ok := strings.CutSuffix(name, "_bucket"); ok && !shown[name] && !shown[base+"_count"] {
			t.Errorf("the dashboard does not show the histogram %s", base)
		}
	}
}

func TestAlertsUseExportedMetrics(t *testing.T) {
	t.Parallel()
	exported := exportedMetrics(t)
	text, err := os.ReadFile("../../deploy/prometheus/alerts.yml")
	if err != nil {
		t.Fatal(err)
	}
	rules := ruleExpr.FindAllStringSubmatch(string(text), -1)
	if want := strings.Count(string(text), "- alert: "); len(rules) != want || want == 0 {
		t.Fatalf("found %d expressions, want one for each of the %d alerts", len(rules), want)
	}
	for _, rule := range rules {
		checkExpression(t, exported, strings.Join(strings.Fields(rule[1]), " "))
	}
}
