//! A correct lock, and the records of it: in virtual time, from a seed.

mod holds;
mod queue;

use rand::{RngExt, SeedableRng, rngs::StdRng};
use ringfence_chaos::history::{Answer, Deed, Event, Fault, History, Kind, Phase, Token};

const MS: u64 = 1_000_000;
const LEASE_MS: u64 = 3500;
/// How long a holder believes after the send: the lease less 1 %, less 20 ms.
const BELIEVED: u64 = 3445 * MS;
/// As long, where it is a turn that was answered: for the longest claim there is.
const CLAIMED: u64 = 2950 * MS;
const LEASE: u64 = LEASE_MS * MS;
const NEMESIS: u32 = 0;
const RESOURCE: u32 = 1;

/// A history of some keys, each with a few dozen grants, in which nothing is wrong.
pub(crate) fn history(seed: u64) -> History {
    let mut reference = Reference {
        rng: StdRng::seed_from_u64(seed),
        events: Vec::new(),
        numbers: 10,
        te: 100,
    };
    let mut lanes: Vec<Lane> = (0..3).map(|number| reference.lane(number)).collect();
    reference.push(NEMESIS, 1000 * MS, fault(Phase::Invoke, Fault::Delay));
    reference.push(NEMESIS, 5000 * MS, fault(Phase::Ok, Fault::Delay));
    for lane in &mut lanes {
        for _ in 0..reference.between(6, 14) {
            reference.grant(lane);
        }
    }
    let healed = lanes.iter().map(|lane| lane.free).max().unwrap();
    reference.push(NEMESIS, healed, fault(Phase::Ok, Fault::Heal));
    for lane in &mut lanes {
        reference.leave(lane);
        lane.free = healed;
        reference.hold_and_release(lane);
        reference.leave(lane);
    }
    History::new(reference.events)
}

struct Reference {
    rng: StdRng,
    events: Vec<Event>,
    /// For processes, operations, nonces, counters and serials: none is used twice.
    numbers: u64,
    te: u64,
}

/// One key, alone on its shard, and its requesters.
struct Lane {
    key: String,
    shard: String,
    processes: Vec<u32>,
    /// When the shard would grant it again.
    free: u64,
    /// A write under way by a holder that was stopped.
    late: Option<Deed>,
    /// Those with a ticket, in the order of the queue.
    queue: Vec<Waiter>,
}

/// Somebody with a ticket.
struct Waiter {
    process: u32,
    /// What was asked.
    deed: Deed,
    asked: u64,
    /// When its last request left.
    sent: u64,
    /// When its next one leaves.
    next: u64,
}

/// A grant under way.
struct Held {
    process: u32,
    deed: Deed,
    sent: u64,
    deadline: u64,
    /// The latest time that anything was recorded of it.
    now: u64,
}

fn fault(phase: Phase, fault: Fault) -> Deed {
    Deed {
        fault: Some(fault),
        ..Deed::ended(0, Kind::Nemesis, phase)
    }
}

impl Reference {
    fn between(&mut self, from: u64, to: u64) -> u64 {
        self.rng.random_range(from..to)
    }

    fn number(&mut self) -> u64 {
        self.numbers += 1;
        self.numbers
    }

    fn lane(&mut self, number: usize) -> Lane {
        Lane {
            key: format!("key-{number}"),
            shard: format!("shard-{number}"),
            processes: (0..3).map(|_| self.number() as u32).collect(),
            free: self.between(1000, 2000) * MS,
            late: None,
            queue: Vec::new(),
        }
    }

    fn push(&mut self, process: u32, t_ns: u64, deed: Deed) {
        let run = "reference".to_owned();
        self.events.push(Event {
            run,
            seed: 0,
            process,
            t_ns,
            deed,
        });
    }

    /// One grant, and one of the ways in which it can end.
    fn grant(&mut self, lane: &mut Lane) {
        match self.rng.random_range(0..8) {
            4 | 5 => self.hold_and_hand_on(lane),
            0 => self.hold_until_stopped(lane),
            1 => self.hold_until_killed(lane),
            2 => self.hold_through_a_restart(lane),
            3 => self.hold_and_release_unheard(lane),
            _ => self.hold_and_release(lane),
        }
    }

    /// The first waiter of the queue, or a newcomer if there is none.
    fn acquire(&mut self, lane: &mut Lane) -> Held {
        let mut held = if lane.queue.is_empty() {
            self.find_it_free(lane)
        } else {
            self.have_its_turn(lane)
        };
        self.refuse_another(lane, held.now, Answer::Held);
        self.write(lane, &mut held);
        for _ in 0..self.rng.random_range(0..4) {
            self.renew(&mut held);
        }
        held
    }

    fn find_it_free(&mut self, lane: &Lane) -> Held {
        let asked = lane.free + self.between(1, 300) * MS;
        let sent = asked + self.between(0, 5) * MS;
        let process = lane.processes[self.rng.random_range(0..lane.processes.len())];
        let nonce = format!("nonce:{}", self.number());
        let of_lock = self.ask_for(lane, process, asked, nonce);
        let told = sent + self.between(1, 50) * MS;
        self.granted(process, of_lock, sent, told, false)
    }

    /// Somebody asks for the lock at `asked`.
    fn ask_for(&mut self, lane: &Lane, process: u32, asked: u64, nonce: String) -> Deed {
        let of_lock = Deed {
            key: Some(lane.key.clone()),
            shard: Some(lane.shard.clone()),
            lease_ms: Some(LEASE_MS),
            ..Deed::invoke(self.number(), Kind::Acquire)
        };
        self.push(process, asked, of_lock.clone());
        Deed {
            nonce: Some(nonce),
            ..of_lock
        }
    }

    /// Tells `process` that what it asked for was granted.
    fn granted(&mut self, process: u32, asked: Deed, sent: u64, told: u64, turn: bool) -> Held {
        let token = Some(Token {
            te: self.te,
            ctr: self.number(),
        });
        let deed = Deed { token, ..asked };
        let deadline = sent + if turn { CLAIMED } else { BELIEVED };
        self.tell(
            process,
            told,
            Deed {
                sent_ns: Some(sent),
                deadline_ns: Some(deadline),
                turn,
                ..deed.clone()
            },
        );
        Held {
            process,
            deed,
            sent,
            deadline,
            now: told,
        }
    }

    /// An engine knows of a grant, and so does the task that requested it.
    fn tell(&mut self, process: u32, told: u64, granted: Deed) {
        let (phase, judged_ns) = (Phase::Ok, Some(told));
        let grant = Deed {
            op: self.number(),
            kind: Kind::Grant,
            phase,
            ..granted.clone()
        };
        self.push(process, told, grant);
        self.push(
            process,
            told,
            Deed {
                phase,
                judged_ns,
                ..granted
            },
        );
    }

    /// Somebody else asks at `at`, and is refused.
    fn refuse_another(&mut self, lane: &Lane, at: u64, answer: Answer) {
        let process = self.number() as u32;
        let asked = Deed {
            key: Some(lane.key.clone()),
            ..Deed::invoke(self.number(), Kind::Acquire)
        };
        let refused = Deed {
            phase: Phase::Fail,
            answer: Some(answer),
            ..asked.clone()
        };
        self.push(process, at, asked);
        self.push(process, at + MS, refused);
    }

    /// Maybe writes; then a write of a former holder, that was under way for long, is refused.
    fn write(&mut self, lane: &mut Lane, held: &mut Held) {
        if self.rng.random_bool(0.5) {
            return;
        }
        let begun = held.now + self.between(0, 5) * MS;
        held.now = begun + 2 * MS;
        let write = Deed {
            op: self.number(),
            kind: Kind::Write,
            phase: Phase::Invoke,
            ..held.deed.clone()
        };
        self.push(held.process, begun, write.clone());
        self.apply(begun + MS, write, Answer::Accepted);
        if let Some(late) = lane.late.take() {
            self.apply(begun + 2 * MS, late, Answer::Rejected);
        }
    }

    fn apply(&mut self, t_ns: u64, write: Deed, answer: Answer) {
        let serial = Some(self.number());
        let (kind, phase, answer) = (Kind::Apply, Phase::Ok, Some(answer));
        self.push(
            RESOURCE,
            t_ns,
            Deed {
                kind,
                phase,
                answer,
                serial,
                ..write
            },
        );
    }

    /// A renewal is answered, or its answer lost.
    fn renew(&mut self, held: &mut Held) {
        let sent = held.now.max(held.sent + 600 * MS) + self.between(0, 100) * MS;
        if sent + 200 * MS > held.deadline {
            return;
        }
        held.now = sent + self.between(1, 100) * MS;
        if self.rng.random_bool(0.2) {
            let lost = Deed {
                phase: Phase::Info,
                ..self.renewal(held, sent)
            };
            self.push(held.process, held.now, lost);
        } else {
            self.renewed(held, sent, Answer::Renewed);
        }
    }

    fn renewed(&mut self, held: &mut Held, sent: u64, answer: Answer) {
        (held.sent, held.deadline) = (sent, sent + BELIEVED);
        let renewed = Deed {
            phase: Phase::Ok,
            answer: Some(answer),
            deadline_ns: Some(held.deadline),
            ..self.renewal(held, sent)
        };
        self.push(held.process, held.now, renewed);
    }

    fn renewal(&mut self, held: &Held, sent: u64) -> Deed {
        Deed {
            op: self.number(),
            kind: Kind::Renew,
            sent_ns: Some(sent),
            ..held.deed.clone()
        }
    }

    /// The lock, held since a request sent at `since`, is free from `at` on.
    fn free(&mut self, lane: &mut Lane, since: u64, at: u64) {
        let since = since.max(lane.free);
        lane.free = at;
        self.wait(lane, since);
    }

    fn begin_release(&mut self, held: &Held) -> Event {
        self.begin_release_at(held, held.now + (held.deadline - held.now) / 2)
    }

    fn begin_release_at(&mut self, held: &Held, begun: u64) -> Event {
        let deed = Deed {
            op: self.number(),
            kind: Kind::Release,
            ..held.deed.clone()
        };
        self.push(held.process, begun, deed);
        self.events.last().unwrap().clone()
    }

    fn end_release(&mut self, held: &Held, at: u64, begun: Deed, phase: Phase, answer: Answer) {
        let answer = Some(answer);
        self.push(
            held.process,
            at,
            Deed {
                phase,
                answer,
                ..begun
            },
        );
    }

    fn nemesis(&mut self, lane: &Lane, held: &Held, what: Fault, from: u64, to: u64) {
        let of_client = matches!(what, Fault::KillClient | Fault::StopClient);
        let deed = Deed {
            op: self.number(),
            shard: (!of_client).then(|| lane.shard.clone()),
            victim: of_client.then_some(held.process),
            ..fault(Phase::Invoke, what)
        };
        let phase = Phase::Ok;
        self.push(NEMESIS, from, deed.clone());
        self.push(NEMESIS, to, Deed { phase, ..deed });
    }
}
