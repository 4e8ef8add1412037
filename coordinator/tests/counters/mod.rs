//! Segments and heads on real servers: they answer as the rules do, and say what a server may have lost.

mod alike;
mod desk;
mod durable;
mod heads;
mod layouts;
mod limits;
mod names;
mod remembered;
mod requests;
mod stored;
