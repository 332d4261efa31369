package config

import (
	"cmp"
	"slices"
	"strings"
	"time"
)

// complete fills in the defaults.
func (c *Config) complete() {
	c.Store.Namespace = cmp.Or(c.Store.Namespace, "default")
	c.Server.Listen = cmp.Or(c.Server.Listen, "127.0.0.1:8080")
	c.Server.Drain.Duration = cmp.Or(c.Server.Drain.Duration, 30*time.Second)
	c.Server.MaxRuns = cmp.Or(c.Server.MaxRuns, 256)
	if a := c.Server.Auth; a != nil {
		a.Anonymous = cmp.Or(a.Anonymous, "none")
	}
	d := &c.Defaults
	d.TTL.Duration = cmp.Or(d.TTL.Duration, 30*time.Second)
	d.Timezone = cmp.Or(d.Timezone, "UTC")
	d.History = d.History.over(History{Keep: Duration{30 * 24 * time.Hour}, MaxRuns: 1000, LogBytes: 64 << 10})
	for id, j := range c.Jobs {
		j.ID = id
		j.complete(d)
		j.shape, _ = newShape(id, j.Params)
		if j.Pattern() {
			c.patterns = append(c.patterns, j)
		}
	}
	slices.SortFunc(c.patterns, func(a, b *Job) int {
		return cmp.Or(b.shape.literals()-a.shape.literals(), strings.Compare(a.ID, b.ID))
	})
}

func (j *Job) complete(d *Defaults) {
	j.TTL.Duration = cmp.Or(j.TTL.Duration, d.TTL.Duration)
	j.Grace.Duration = cmp.Or(j.Grace.Duration, d.Grace.Duration, min(5*time.Second, j.TTL.Duration/4))
	j.Timezone = cmp.Or(j.Timezone, d.Timezone)
	j.Missed = cmp.Or(j.Missed, "skip")
	j.Lock = cmp.Or(j.Lock, "job:"+j.ID)
	j.Concurrency = cmp.Or(j.Concurrency, 1)
	j.OnConflict = cmp.Or(j.OnConflict, "skip")
	j.OnLost = cmp.Or(j.OnLost, "kill")
	if j.Methods == nil {
		j.Methods = List{"POST"}
	}
	switch j.OnConflict {
	case "wait":
		if j.Wait == nil {
			j.Wait = &Wait{}
		}
		j.Wait.Max = cmp.Or(j.Wait.Max, 100)
		j.Wait.For.Duration = cmp.Or(j.Wait.For.Duration, 10*time.Minute)
	case "queue":
		if j.Queue == nil {
			j.Queue = &Queue{}
		}
		j.Queue.Max = cmp.Or(j.Queue.Max, 100)
	}
	if r := j.Retries; r != nil {
		r.Backoff.Duration = cmp.Or(r.Backoff.Duration, 10*time.Second)
		r.Factor = cmp.Or(r.Factor, 2)
		r.MaxBackoff.Duration = cmp.Or(r.MaxBackoff.Duration, max(5*time.Minute, r.Backoff.Duration))
	}
	if j.Idempotency == nil {
		j.Idempotency = &Idempotency{}
	}
	j.Idempotency.TTL.Duration = cmp.Or(j.Idempotency.TTL.Duration, 24*time.Hour)
	if h := j.HTTP; h != nil {
		h.Method = cmp.Or(h.Method, "POST")
		h.Timeout.Duration = cmp.Or(h.Timeout.Duration, 30*time.Second)
	}
	if j.History == nil {
		j.History = &History{}
	}
	*j.History = j.History.over(d.History)
}

func (h History) over(base History) History {
	return History{
		Keep:     Duration{cmp.Or(h.Keep.Duration, base.Keep.Duration)},
		MaxRuns:  cmp.Or(h.MaxRuns, base.MaxRuns),
		LogBytes: cmp.Or(h.LogBytes, base.LogBytes),
	}
}

// Pause is how long to wait before retry n, which counts from 1.
func (r *Retries) Pause(n int) time.Duration {
	pause := float64(r.Backoff.Duration)
	for range n - 1 {
		if pause *= r.Factor; pause >= float64(r.MaxBackoff.Duration) {
			break
		}
	}
	return min(time.Duration(pause), r.MaxBackoff.Duration)
}
