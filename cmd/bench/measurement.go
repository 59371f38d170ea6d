package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// measurement is one row: what is measured, in which unit, against which peer, and the goal.
type measurement struct {
	suite, name string
	unit        unit
	goal        goal
	samples     int    // of a full run; --quick takes a tenth, at least three
	settings    string // flags of the measured service; the first flag names the row; empty: the defaults
	peerName    string
	peer        peerFunc // nil: the unit's baseline
	open        openFunc
}

// The numbers of samples for rows that take milliseconds, tens of milliseconds, and seconds.
const (
	manySamples = 400
	someSamples = 60
	fewSamples  = 20
	oneSample   = 1
)

// maxRowTime bounds the time for the samples of a row, once it has three.
const maxRowTime = 40 * time.Second

// unit is the unit of a row's figures.
type unit struct {
	label          string
	digits         int
	higherIsBetter bool
	baseline       func(context.Context) (float64, error) // a sample of the peer that measures the machine; may be nil
}

var (
	milliseconds       = unit{label: "ms", digits: 2, baseline: baselineMilliseconds}
	perSecond          = unit{label: "/s", higherIsBetter: true, baseline: baselinePerSecond}
	megabytes          = unit{label: "MB", digits: 2}
	megabytesPerSecond = unit{label: "MB/s", higherIsBetter: true}
	microsPerStep      = unit{label: "µs/step", digits: 2}
	bytesPerStep       = unit{label: "bytes/step", digits: 2}
	times              = unit{label: "times", digits: 2}
	wrongAnswers       = unit{label: "wrong"}
)

// baselineName is the peer of rows that name none; it measures the machine.
const baselineName = "python3 -c pass"

// goal is the figure that a row must reach. The zero value sets no goal.
type goal struct {
	set    bool
	value  float64 // of the median; at least, if the unit's higherIsBetter is set, else at most
	p99    float64 // at most; 0: none
	ofPeer bool    // value and p99 are multiples of the peer's median
}

func absolute(value, p99 float64) goal { return goal{set: true, value: value, p99: p99} }
func ofPeer(value, p99 float64) goal   { return goal{set: true, value: value, p99: p99, ofPeer: true} }

// text returns the goal for a table: ≤ 0.12 (p99 0.5).
func (g goal) text(u unit) string {
	if !g.set {
		return ""
	}
	text, suffix := "≤", " "+u.label
	if u.higherIsBetter {
		text = "≥"
	}
	if g.ofPeer {
		suffix = "x"
	}
	text += fmt.Sprintf(" %s%s", strconv.FormatFloat(math.Round(100*g.value)/100, 'f', -1, 64), suffix)
	if g.p99 > 0 {
		text += fmt.Sprintf(", p99 %g%s", g.p99, suffix)
	}
	return text
}

// met reports whether figures reach the goal.
func (g goal) met(u unit, median, p99, peer, ratio float64) bool {
	if g.ofPeer {
		median, p99 = ratio, p99/peer
	}
	if u.higherIsBetter {
		return median >= g.value
	}
	return median <= g.value && (g.p99 == 0 || p99 <= g.p99)
}

// sampleFunc takes one sample, in the unit of its row.
type sampleFunc func() (float64, error)

// openFunc prepares a row on a service, and peerFunc on a peer.
type (
	openFunc func(context.Context, *glasshouse) (sampler, error)
	peerFunc func(context.Context, *bench) (sampler, error)
)

// sampler takes the samples of a row from one service or peer.
type sampler struct {
	sample sampleFunc
	close  func() // may be nil
}

func (s sampler) end() {
	if s.close != nil {
		s.close()
	}
}

// only returns a sampler without an end.
func only(sample sampleFunc) sampler { return sampler{sample: sample} }

var suites = map[string]func(options) []measurement{
	"api": apiRows, "fairness": fairnessRows, "isolation": isolationRows, "sql": sqlRows, "debug": debugRows,
	"compat": compatRows, "density": densityRows, "history": historyRows, "mcp": mcpRows, "peers": peerRows,
	"replay": replayRows,
}

func suiteNames() []string { return slices.Sorted(maps.Keys(suites)) }

// selectRows returns the rows of suites whose names match --only.
func selectRows(o options, names []string) (rows []measurement, err error) {
	for _, name := range names {
		suite := suites[name]
		if suite == nil {
			return nil, fmt.Errorf("there is no suite %q; the suites are %v", name, suiteNames())
		}
		for _, m := range suite(o) {
			if m.suite = name; o.only.MatchString(m.name) {
				rows = append(rows, m)
			}
		}
	}
	if len(rows) == 0 {
		return nil, fmt.Errorf("no row of %v matches --only %s", names, o.only)
	}
	return rows, nil
}

// bench has the services and peers that run; they are started when a row needs them.
type bench struct {
	options
	services map[string]*glasshouse // by their settings
	servers  map[string]*server     // peers, by their program
}

func newBench(o options) *bench {
	return &bench{options: o, services: map[string]*glasshouse{}, servers: map[string]*server{}}
}

func (b *bench) close() {
	for _, s := range b.services {
		s.Close()
	}
	for _, s := range b.servers {
		s.stop()
	}
}

// service returns the service with settings, and starts it if it does not run yet.
func (b *bench) service(ctx context.Context, setting string) (*glasshouse, error) {
	if s := b.services[setting]; s != nil {
		return s, nil
	}
	progress("starting the service %s", setting)
	s, err := startGlasshouse(ctx, b.binary, b.python, strings.Fields(setting)...)
	if err == nil {
		b.services[setting] = s
	}
	return s, err
}

// measure measures a row in pairs with its peer.
func (b *bench) measure(ctx context.Context, m measurement) row {
	r := row{Suite: m.suite, Name: m.name, Unit: m.unit.label, digits: m.unit.digits, Goal: m.goal.text(m.unit), Peer: m.peerName}
	if first, _, _ := strings.Cut(m.settings, " "); first != "" {
		r.Name += ", " + first
	}
	if r.Peer == "" && m.peer == nil && m.unit.baseline != nil {
		r.Peer = baselineName
	}
	took, peers, err := b.pairs(ctx, m)
	if err != nil {
		r.Error = err.Error()
		if m.goal.set && !errors.Is(err, errPeersMissing) {
			r.Met = new(false)
		}
		return r
	}
	r.Samples, r.Median, r.P99 = len(took), new(median(took)), new(quantile(took, 0.99))
	ratio, peer := 0.0, 0.0
	if len(peers) > 0 {
		ratio, peer = median(ratios(took, peers)), median(peers)
		r.PeerMedian, r.Ratio = &peer, &ratio
	}
	if m.goal.set {
		r.Met = new(m.goal.met(m.unit, *r.Median, *r.P99, peer, ratio))
	}
	return r
}

// pairs takes the samples of a row, and those of its peer if it has one.
func (b *bench) pairs(ctx context.Context, m measurement) (took, peers []float64, err error) {
	service, err := b.service(ctx, m.settings)
	if err != nil {
		return nil, nil, err
	}
	ours, err := m.open(ctx, service)
	if err != nil {
		return nil, nil, err
	}
	defer ours.end()
	n := m.samples
	if b.quick {
		n = max(min(3, n), n/10)
	}
	switch {
	case m.peer != nil:
		peer, err := m.peer(ctx, b)
		if err != nil {
			return nil, nil, err
		}
		defer peer.end()
		return inTurn(ctx, n, maxRowTime, ours.sample, peer.sample, true)
	case m.unit.baseline != nil:
		return inTurn(ctx, n, maxRowTime, ours.sample, func() (float64, error) { return m.unit.baseline(ctx) }, false)
	}
	for end := time.Now().Add(maxRowTime); len(took) < n && (len(took) < 3 || time.Now().Before(end)); {
		value, err := ours.sample()
		if err = errors.Join(err, ctx.Err()); err != nil {
			return nil, nil, err
		}
		took = append(took, value)
	}
	return took, nil, nil
}
