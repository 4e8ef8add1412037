//! The ways in which a grant can end.

use rand::RngExt;
use ringfence_chaos::history::{Answer, Deed, Fault, Kind, Phase, Token};

use super::{LEASE, LEASE_MS, Lane, MS, Reference};

const GRACE: u64 = (LEASE_MS + 20) * MS;

impl Reference {
    pub(super) fn hold_and_release(&mut self, lane: &mut Lane) {
        let held = self.acquire(lane);
        let begun = self.begin_release(&held);
        let end = begun.deed.clone();
        self.end_release(&held, begun.t_ns + 5 * MS, end, Phase::Ok, Answer::Released);
        self.free(lane, held.sent, begun.t_ns + 3 * MS);
    }

    /// Others in the process of the holder wait for it, and have it one after the other.
    pub(super) fn hold_and_hand_on(&mut self, lane: &mut Lane) {
        if !lane.queue.is_empty() {
            return self.hold_and_release(lane);
        }
        let mut held = self.acquire(lane);
        let others: Vec<Deed> = (0..self.rng.random_range(1..4))
            .map(|other| {
                let asked = held.now + other * MS;
                let nonce = held.deed.nonce.clone().unwrap();
                let deed = self.ask_for(lane, held.process, asked, nonce);
                let waits = Deed {
                    kind: Kind::Wait,
                    phase: Phase::Ok,
                    nonce: None,
                    ..deed.clone()
                };
                self.push(held.process, asked + MS / 2, waits);
                deed
            })
            .collect();
        held.now += 10 * MS;
        for deed in others {
            let left = held.deadline.saturating_sub(held.now) / 10;
            let release = self.begin_release_at(&held, held.now + left);
            let handed = release.t_ns + MS;
            self.end_release(&held, handed, release.deed, Phase::Ok, Answer::Released);
            let token = Some(Token {
                te: self.te,
                ctr: self.number(),
            });
            held.deed = Deed { token, ..deed };
            self.tell(
                held.process,
                handed,
                Deed {
                    sent_ns: Some(held.sent),
                    deadline_ns: Some(held.deadline),
                    handed: true,
                    ..held.deed.clone()
                },
            );
            held.now = handed;
            self.write(lane, &mut held);
            if self.rng.random_bool(0.5) {
                self.renew(&mut held);
            }
        }
        let begun = self.begin_release(&held);
        let end = begun.deed.clone();
        self.end_release(&held, begun.t_ns + 5 * MS, end, Phase::Ok, Answer::Released);
        self.free(lane, held.now, begun.t_ns + 3 * MS);
    }

    /// The release's answer is lost: the record may be there until it expires.
    pub(super) fn hold_and_release_unheard(&mut self, lane: &mut Lane) {
        let held = self.acquire(lane);
        let begun = self.begin_release(&held);
        let end = begun.deed.clone();
        self.end_release(
            &held,
            begun.t_ns + 900 * MS,
            end,
            Phase::Info,
            Answer::NotThere,
        );
        self.free(lane, held.sent, held.now.max(held.sent) + LEASE);
    }

    /// The holder stops amid a write, and wakes after its deadline.
    pub(super) fn hold_until_stopped(&mut self, lane: &mut Lane) {
        let held = self.acquire(lane);
        let write = Deed {
            op: self.number(),
            kind: Kind::Write,
            ..held.deed.clone()
        };
        self.push(held.process, held.now, write.clone());
        lane.late = Some(write);
        self.nemesis(
            lane,
            &held,
            Fault::StopClient,
            held.now + MS,
            held.deadline + 10 * MS,
        );
        let lost = Deed {
            answer: Some(Answer::Lost),
            kind: Kind::GuardState,
            phase: Phase::Ok,
            op: self.number(),
            ..held.deed.clone()
        };
        self.push(held.process, held.deadline + 11 * MS, lost);
        self.free(lane, held.sent, held.now.max(held.sent) + LEASE);
    }

    /// The holder dies, maybe amid its release; another process takes its place.
    pub(super) fn hold_until_killed(&mut self, lane: &mut Lane) {
        let held = self.acquire(lane);
        let mut at = held.now + MS;
        if self.rng.random_bool(0.5) {
            at = self.begin_release(&held).t_ns + MS;
        }
        self.nemesis(lane, &held, Fault::KillClient, at, at + MS);
        lane.processes.retain(|process| *process != held.process);
        let process = self.number() as u32;
        lane.processes.push(process);
        self.free(lane, held.sent, held.now.max(held.sent) + LEASE);
    }

    /// The shard comes back empty: the holder puts its record back, or gives it back before it can.
    pub(super) fn hold_through_a_restart(&mut self, lane: &mut Lane) {
        let mut held = self.acquire(lane);
        let (down, up) = (held.now + MS, held.now + 60 * MS);
        self.nemesis(lane, &held, Fault::RestartEmpty, down, up);
        self.te += 1;
        self.refuse_another(lane, up + MS, Answer::Grace);
        let reclaims = up + 300 * MS < held.deadline && self.rng.random_bool(0.7);
        held.now = up + 10 * MS;
        if reclaims {
            let sent = up + self.between(10, 100) * MS;
            held.now = sent + 20 * MS;
            self.renewed(&mut held, sent, Answer::Reclaimed);
        }
        let begun = self.begin_release(&held);
        let answer = if reclaims {
            Answer::Released
        } else {
            Answer::NotThere
        };
        self.end_release(&held, begun.t_ns + 5 * MS, begun.deed, Phase::Ok, answer);
        self.free(lane, held.sent, down);
        lane.free = up + GRACE.max(begun.t_ns + 3 * MS - up);
        self.queue_anew(lane);
    }
}
