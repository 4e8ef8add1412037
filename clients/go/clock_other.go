//go:build !linux && !darwin

package ringfence

import "time"

var start = time.Now()

// now is Go's monotonic clock. It may stop while the machine is suspended. If it does, a lock whose lease ended
// meanwhile still counts as held after the resume, until a renewal finds it lost or the rest of the lease is over. Only
// the fencing token stops its holder until then.
func now() time.Duration { return time.Since(start) }
