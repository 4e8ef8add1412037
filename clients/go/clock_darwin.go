package ringfence

import "golang.org/x/sys/unix"

// Runs while the machine is suspended, as CLOCK_BOOTTIME does on Linux.
const sinceBoot = unix.CLOCK_MONOTONIC
