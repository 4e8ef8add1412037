package ringfence

import (
	"context"
	"net"
	"net/netip"
	"slices"
	"time"
)

// A connection to an address that a name has no longer is closed after this time: calls may be under way.
const placeKept = time.Minute

// lookUpHost is replaced in tests.
var lookUpHost = net.DefaultResolver.LookupHost

// lookUp finds the present addresses of all names, unless another call does. If it fails, those of before stay.
func (c *Client) lookUp() {
	if !slices.ContainsFunc(c.names, isHost) || !c.looksUp.CompareAndSwap(false, true) {
		return
	}
	defer c.looksUp.Store(false)
	ctx, cancel := context.WithTimeout(context.Background(), c.timeout)
	defer cancel()
	former := *c.places.Load()
	var places []place
	for _, name := range c.names {
		for _, address := range c.addresses(ctx, name) {
			known := slices.IndexFunc(former, func(p place) bool { return p.name == name && p.address == address })
			if known >= 0 {
				places = append(places, former[known])
			} else if one, err := c.connect(name, address); err == nil {
				places = append(places, one)
			}
		}
	}
	if len(places) == 0 {
		return
	}
	c.places.Store(&places)
	replaced := slices.DeleteFunc(slices.Clone(former), func(p place) bool { return slices.Contains(places, p) })
	if len(replaced) > 0 {
		time.AfterFunc(placeKept, func() { closeAll(replaced) })
	}
}

// addresses returns those of a name, or "" for the name itself, if that has one.
func (c *Client) addresses(ctx context.Context, name string) []string {
	if !isHost(name) {
		return []string{""}
	}
	host, port, _ := net.SplitHostPort(name)
	found, err := lookUpHost(ctx, host)
	var addresses []string
	for _, address := range found {
		addresses = append(addresses, net.JoinHostPort(address, port))
	}
	if err != nil {
		for _, known := range *c.places.Load() {
			if known.name == name {
				addresses = append(addresses, known.address)
			}
		}
	}
	slices.Sort(addresses)
	if addresses = slices.Compact(addresses); len(addresses) < 2 {
		return []string{""}
	}
	return addresses
}

// isHost tells whether name is a host with a port, not an address, nor a target of gRPC with a scheme.
func isHost(name string) bool {
	host, _, err := net.SplitHostPort(name)
	if err != nil {
		return false
	}
	_, err = netip.ParseAddr(host)
	return err != nil
}
