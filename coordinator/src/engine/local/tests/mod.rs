//! One key's local queue: sequences of events, each checked for the required properties, and examples. And
//! the local queues of whole engines, with threads that shuttle schedules.

mod examples;
mod interleavings;
mod process;
mod readers;
mod sequences;
mod world;
