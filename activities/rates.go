package activities

import (
	"context"
	"errors"
	"time"

	"go.temporal.io/sdk/activity"

	"kivuko/exchange"
)

// RateSource returns exchange rates. CodeUnavailable when there is no answer.
type RateSource interface {
	Rates(ctx context.Context) (exchange.SourcedRates, error)
}

// RateStore stores rates. EnterSourcedRate refuses with CodeInvalid a rate that jumps, is stale or is not newer than the last
// one, which then stays in force.
type RateStore interface {
	EnterSourcedRate(ctx context.Context, r exchange.FXRate) error
}

// Rates enters the rates of a source into the books. Source is nil if an admin enters all rates.
type Rates struct {
	Store  RateStore
	Source RateSource
	Name   string        // of the source, in the books
	Life   time.Duration // how long after its time a rate is used
}

// PulledRates is the result of one read of the source.
type PulledRates struct {
	Entered int `json:"entered"`
	Known   int `json:"known"`   // no newer than the last
	Refused int `json:"refused"` // broken, stale, or too far from the last
}

// PullRates enters the new rates of the source. A refused rate leaves the last one in force, and is logged and counted. A
// repeated run enters nothing twice, because the database refuses a rate that is not newer than the last.
func (a *Rates) PullRates(ctx context.Context) (PulledRates, error) {
	var out PulledRates
	if a.Source == nil {
		return out, nil
	}
	said, err := a.Source.Rates(ctx)
	if err != nil {
		return out, Failure(ctx, err)
	}
	log := activity.GetLogger(ctx)
	if out.Refused = said.Broken; said.Broken > 0 {
		log.Warn("the rate source sent invalid rates", "source", a.Name, "lines", said.Broken)
	}
	for _, r := range said.Rates {
		r.Source, r.StaleAt = a.Name, r.ValidFrom.Add(a.Life)
		err := a.Store.EnterSourcedRate(ctx, r)
		switch e, _ := errors.AsType[*exchange.Error](err); {
		case err == nil:
			out.Entered++
		case e != nil && len(e.Fields) == 1 && e.Fields[0].Code == exchange.RateNotNewer:
			out.Known++
		case e != nil && (e.Code == exchange.CodeInvalid || e.Code == exchange.CodeStateConflict):
			out.Refused++
			log.Warn("a rate of the rate source was refused; the last rate stays in force", "source", a.Name, "base", r.Base, "cause", e.Error())
		default:
			return out, Failure(ctx, err)
		}
	}
	of := activity.GetMetricsHandler(ctx).WithTags(map[string]string{"source": a.Name})
	of.Counter("kivuko_rates_entered").Inc(int64(out.Entered))
	of.Counter("kivuko_rates_refused").Inc(int64(out.Refused))
	return out, nil
}
