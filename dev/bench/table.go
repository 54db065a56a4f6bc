package bench

import (
	"fmt"
	"io"
	"math"
	"strings"
	"text/tabwriter"
)

// goal is the bound of a figure; the zero goal is none.
type goal struct {
	bound float64
	most  bool // the figure may at most be the bound
	set   bool
}

func atLeast(v float64) goal { return goal{bound: v, set: true} }

func atMost(v float64) goal { return goal{bound: v, most: true, set: true} }

func (g goal) String() string {
	switch {
	case !g.set:
		return "-"
	case g.most:
		return fmt.Sprintf("at most %g", g.bound)
	}
	return fmt.Sprintf("at least %g", g.bound)
}

const missed = "MISSED"

// verdict returns whether a figure meets the goal, or by how much it misses it.
func (g goal) verdict(v float64) string {
	switch {
	case math.IsInf(v, 0) || math.IsNaN(v): // nothing ended within the stretch
		return "not measured"
	case !g.set:
		return "-"
	case g.most && v <= g.bound, !g.most && v >= g.bound:
		return "met"
	case g.bound == 0:
		return missed
	}
	by := 100 * (g.bound - v) / g.bound
	if g.most {
		by = -by
	}
	return fmt.Sprintf(missed+" by %.1f %%", by)
}

// figure is one line of the table.
type figure struct {
	name  string
	ratio float64
	unit  string // empty: it is a ratio
	goal  goal
	note  string
	why   string // explains a missed goal
}

// table collects figures in the order in which they are added.
type table struct{ figures []figure }

func (t *table) add(f figure) { t.figures = append(t.figures, f) }

func (t *table) print(out io.Writer) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(w, "FIGURE\tMEASURED\tGOAL\tVERDICT\tNOTE")
	for _, f := range t.figures {
		unit := f.unit
		if unit == "" {
			unit = "x"
		}
		verdict := f.goal.verdict(f.ratio)
		if f.why != "" && strings.HasPrefix(verdict, missed) {
			f.note += "; " + f.why
		}
		_, _ = fmt.Fprintf(w, "%s\t%.3g %s\t%s\t%s\t%s\n", f.name, f.ratio, unit, f.goal, verdict, f.note)
	}
	return w.Flush() // the tabwriter keeps the first error
}
