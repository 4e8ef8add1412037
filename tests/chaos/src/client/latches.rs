//! Sets latches, counts them down under ids that it repeats, and looks at them; one after the other.

use std::io;

use rand::rngs::StdRng;
use tokio::time::sleep;

use super::worker::{PAUSE, part};
use crate::counters::{Answer, Call, Desk, latches::Latches};

/// Works until dropped. What gets no answer is asked again, under its id.
pub(super) async fn run(desk: Desk, process: u32, mut random: StdRng) -> io::Result<()> {
    let (mut latches, mut again) = (Latches::of(process), None);
    loop {
        let now_ms = desk.counters.new_request().time_ms();
        let next = again.take().or_else(|| latches.next(now_ms, &mut random));
        if let Some(call) = next {
            let answer = desk.call(&call).await;
            if let Call::Latch(call) = &call {
                latches.keep(call, &answer);
            }
            again = matches!(answer, Answer::Nothing(_) | Answer::Unknown(_)).then_some(call);
        }
        sleep(part(PAUSE, &mut random)).await;
    }
}
