package ringfence

// LookUpHost is how clients find the addresses of a host.
var LookUpHost = &lookUpHost
