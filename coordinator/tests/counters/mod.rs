//! Segments and manifests on real servers: they answer as the rules do, and say what a server may have lost.

mod alike;
mod desk;
mod durable;
mod layouts;
mod limits;
mod logged;
mod manifests;
mod names;
mod remembered;
mod requests;
mod stored;
