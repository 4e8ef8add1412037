//! One topology, for any founder and any events meanwhile.

mod cancel;
mod etcd;
mod first_use;
mod home;
mod leftovers;
mod lives;
mod membership;
mod newcomer;
mod processes;
mod recover;
mod resized;
mod seeds;
mod servers;
mod suite;
mod watch;
mod zookeeper;
