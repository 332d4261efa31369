package book

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/dibslock/dibs/driver"
)

// A Log is the end of a run's output.
type Log struct {
	Start uint64 // how many bytes came before Data and are not kept
	Data  []byte
}

// PutLog writes a run's log. One instance alone does, so the last write counts.
func (b *Book) PutLog(ctx context.Context, id string, l Log, keep time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	value := binary.BigEndian.AppendUint64(nil, l.Start)
	value = append(value, l.Data...)
	if over := len(value) - driver.MaxRecord; over > 0 {
		value = value[:driver.MaxRecord]
	}
	for {
		old, _, err := b.get(ctx, "log/"+id)
		if err != nil {
			return err
		}
		if bytes.Equal(old.Value, value) {
			return nil
		}
		_, err = b.records.Put(ctx, driver.Record{Key: b.prefix + "log/" + id, Value: value, Version: old.Version, Retention: keep})
		if err == nil || !errors.Is(err, driver.ErrStale) {
			return err
		}
	}
}

// Log returns a run's log, which is empty if there is none.
func (b *Book) Log(ctx context.Context, id string) (Log, error) {
	if _, err := runKey(id); err != nil {
		return Log{}, err
	}
	r, _, err := b.get(ctx, "log/"+id)
	switch {
	case err != nil || r.Version == 0:
		return Log{}, err
	case len(r.Value) < 8:
		return Log{}, fmt.Errorf("reading the log of %s: it is none", id)
	}
	return Log{Start: binary.BigEndian.Uint64(r.Value), Data: r.Value[8:]}, nil
}

func (b *Book) dropLog(ctx context.Context, id string) error {
	r, _, err := b.get(ctx, "log/"+id)
	if err != nil || r.Version == 0 {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	return b.records.Delete(ctx, b.prefix+"log/"+id, r.Version)
}
