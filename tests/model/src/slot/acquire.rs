//! Acquire: with and without a proof, and what a shard makes of it.

use super::{
    Ask, Event, Nonce, Request, Rule, SlotModel, Token, World,
    mover::ARMED,
    network::Answer,
    state::{Guard, Mode, Proven, Record, Slot},
};

impl SlotModel {
    /// A new nonce, by any view of the ring.
    pub(super) fn acquire(&self, world: &mut World, process: u8, shard: u8) {
        let nonce = self.next_nonce(world, process);
        self.call(world, nonce, shard, Ask::Acquire { proof: None });
    }

    /// The nonce that was told `absent` goes on at the new shard; a later one may use the proof, too.
    pub(super) fn acquire_with_proof(&self, world: &mut World, process: u8) {
        let client = &mut world.processes[usize::from(process)];
        let Some(Proven {
            epoch,
            to,
            keeps_nonce,
        }) = client.proven
        else {
            return;
        };
        let nonce = if keeps_nonce {
            client.nonce
        } else {
            self.next_nonce(world, process)
        };
        self.end_attempt(world, nonce);
        let proof = Some(epoch);
        self.call(world, nonce, to, Ask::Acquire { proof });
    }

    fn next_nonce(&self, world: &mut World, process: u8) -> Nonce {
        let client = &mut world.processes[usize::from(process)];
        client.budget.acquisitions -= 1;
        client.nonce.sequence += 1;
        client.released = 0;
        let nonce = client.nonce;
        self.end_attempt(world, nonce);
        nonce
    }

    /// A proof stays valid, but no longer goes with that nonce.
    pub(super) fn end_attempt(&self, world: &mut World, nonce: Nonce) {
        if let Some(proven) = &mut world.process(nonce).proven {
            proven.keeps_nonce = false;
        }
    }

    /// A process checks whether A holds a record, before it is sealed, or for another key of the slot.
    pub(super) fn prove(&self, world: &mut World, process: u8) {
        let proven = world.topology.migration().map(|migration| Proven {
            epoch: migration.epoch,
            to: migration.to,
            keeps_nonce: false,
        });
        world.processes[usize::from(process)].proven = proven;
    }

    /// The shard: extends what it finds, proves, grants or refuses.
    pub(super) fn acquire_at_shard(
        &self,
        world: &mut World,
        request: &Request,
        mut slot: Slot,
        proof: Option<u8>,
    ) -> Answer {
        let in_grace = slot.grace > 0;
        if slot.mode == Mode::Import && !in_grace {
            self.note_proof(world, request, &mut slot, proof);
        }
        let record = self.live_record(world, request.shard, &slot);
        let own = record.filter(|record| record.nonce == request.nonce);
        match (own, slot.mode) {
            (Some(record), _) if !in_grace || self.breaks(Rule::NoGrantInGrace) => {
                self.found(world, request, record)
            }
            (_, Mode::Sealed(to)) => self.prove_at_shard(&slot, record, to),
            _ if in_grace || record.is_some() => Answer::Refused,
            (_, Mode::Open) => self.grant_open(world, request, slot),
            (_, Mode::Import) => self.grant_import(world, request, slot),
            (_, Mode::Shut) => Answer::Refused,
        }
    }

    fn found(&self, world: &mut World, request: &Request, record: Record) -> Answer {
        if self.holds(Rule::RepeatExtends) {
            self.write(world, request, record.token);
        }
        Answer::Granted(record.token)
    }

    fn prove_at_shard(&self, slot: &Slot, record: Option<Record>, to: u8) -> Answer {
        let may = slot.grace == 0 || self.breaks(Rule::NoProofInGrace);
        if record.is_some() || !may {
            return Answer::Refused;
        }
        let epoch = slot.guard.0;
        Answer::Absent { epoch, to }
    }

    fn grant_open(&self, world: &mut World, request: &Request, slot: Slot) -> Answer {
        let mut migrations = world.topology.migrations.iter();
        let moved = migrations.any(|migration| migration.epoch == slot.guard.0);
        if moved {
            world.ledger.happened = Some(Event::GrantAfterMove);
        } else if (world.topology.removed).is_some_and(|it| it.epoch == Some(slot.guard.0)) {
            world.ledger.happened = Some(Event::GrantAfterRemoval);
        }
        self.grant(world, request, slot)
    }

    /// A proof is valid for every process, as long as the slot comes here.
    fn note_proof(&self, world: &mut World, request: &Request, slot: &mut Slot, proof: Option<u8>) {
        let (epoch, _) = slot.guard;
        let any = self.breaks(Rule::ProofOfItsMove);
        slot.proven |= proof.is_some_and(|proof| proof == epoch || any);
        *world.shard(request.shard).slot_of(request.life) = Some(*slot);
    }

    fn grant_import(&self, world: &mut World, request: &Request, slot: Slot) -> Answer {
        let (_, step) = slot.guard;
        let waits = step == ARMED && self.holds(Rule::ArmedImportWaits);
        let free = slot.proven || slot.list == Some(false);
        if waits || !free {
            return Answer::Refused;
        }
        world.ledger.happened = Some(if slot.proven {
            Event::ProvenGrant
        } else {
            Event::ListedGrant
        });
        self.grant(world, request, slot)
    }

    fn grant(&self, world: &mut World, request: &Request, mut slot: Slot) -> Answer {
        let token = slot.token.next();
        slot.token = token;
        if self.may_be_believed(world, request) {
            world.ledger.granted(token);
        }
        let shard = world.shard(request.shard);
        *shard.slot_of(request.life) = Some(slot);
        self.write(world, request, token);
        Answer::Granted(token)
    }

    /// A full lease for the record of this nonce.
    pub(super) fn write(&self, world: &mut World, request: &Request, token: Token) {
        let Request { nonce, shard, .. } = *request;
        let process = world.process(nonce);
        let released = process.nonce == nonce && process.released >> shard & 1 == 1;
        world.ledger.put_back_after_release |= released;
        let shard = world.shard(shard);
        shard.record = Some(Record {
            nonce,
            token,
            left: self.config.lease,
            life: shard.life,
        });
    }

    /// The record, unless it is of another life and grace is over.
    pub(super) fn live_record(&self, world: &World, shard: u8, slot: &Slot) -> Option<Record> {
        let shard = &world.shards[usize::from(shard)];
        let lives = |record: &Record| {
            record.life == shard.life || slot.grace > 0 || self.breaks(Rule::RecordsOfItsLife)
        };
        shard.record.filter(lives)
    }

    /// The process: granted, from the send of the very request that was answered.
    pub(super) fn granted(&self, world: &mut World, request: &Request, token: Token, left: u8) {
        let process = world.process(request.nonce);
        if left > 0 {
            process.guard = Some(Guard {
                shard: request.shard,
                token,
                left,
            });
            process.fresh = true;
        }
    }

    /// The process: the key is free at the shard that the slot moves from.
    pub(super) fn proven(&self, world: &mut World, request: &Request, epoch: u8, to: u8) {
        world.process(request.nonce).proven = Some(Proven {
            epoch,
            to,
            keeps_nonce: true,
        });
    }
}
