//! UC and UD queue pairs over the cable. Whatever it does: a message that arrives is one that was sent, undamaged; it
//! arrives in its order unless the cable reorders, and once unless the cable duplicates; and each send completes.

use uroce_stack::wire::Psn;
use uroce_stack::{Completion, Instant, QpType, WcOpcode, WcStatus};

use crate::cable::{Cable, Faults};
use crate::parties::{MESSAGES, Message, Party, memory_at};
use crate::rng::Rng;

pub(crate) struct Unreliable {
    ends: [Party; 2],
    cable: Cable,
    faults: Faults,
    now: u64,
    rng: Rng,
    /// By end, queue pair and message: how often it arrived.
    arrived: [Vec<Vec<u32>>; 2],
    /// By receiving end and queue pair, and sending queue pair: the newest message that arrived.
    newest: [Vec<Vec<Option<usize>>>; 2],
}

impl Unreliable {
    pub(crate) fn new(seed: u64, faults: Faults) -> Self {
        let mut rng = Rng::new(seed, 0);
        let kinds: Vec<QpType> = (0..1 + rng.below(4)).map(|_| rng.pick(&[QpType::Uc, QpType::Ud])).collect();
        let mut ends = [0, 1].map(|end| Party::new(end, &mut rng, &kinds));
        let psns: Vec<[Psn; 2]> =
            kinds.iter().map(|_| [rng.word(), rng.word()].map(|any| Psn::new(any as u32))).collect();
        let peers = [ends[1].contacts(), ends[0].contacts()];
        for (end, peers) in ends.iter_mut().zip(&peers) {
            end.connect(peers, &psns);
            end.plan(&mut rng);
        }
        let count = kinds.len();
        let cable = Cable::new(Rng::new(seed, 1), faults);
        Self {
            ends,
            cable,
            faults,
            now: 0,
            rng,
            arrived: [(); 2].map(|()| vec![vec![0; MESSAGES]; count]),
            newest: [(); 2].map(|()| vec![vec![None; count]; count]),
        }
    }

    /// Runs until nothing is under way; tells how many messages were sent and how many arrived.
    pub(crate) fn run(mut self) -> Result<(u32, u32), String> {
        while !self.is_over() {
            self.step()?;
            self.now += 500 + self.rng.below(1_000) as u64;
        }
        self.check_memory()?;
        let arrived = self.arrived.iter().flatten().flatten().filter(|count| **count > 0).count();
        let sent = self.ends.iter().map(Party::planned).sum::<usize>();
        Ok((sent as u32, arrived as u32))
    }

    fn is_over(&self) -> bool {
        self.ends.iter().all(Party::has_sent_all) && self.cable.next_arrival().is_none()
    }

    fn step(&mut self) -> Result<(), String> {
        let now = Instant::from_nanos(self.now);
        while let Some((to, frame)) = self.cable.receive(self.now) {
            let cut = frame.len().min(90 + self.rng.below(400));
            self.ends[to].engine.receive(now, &frame[..cut], &frame[cut..]);
        }
        let mut frame = [0; 5000];
        for index in 0..2 {
            let end = &mut self.ends[index];
            while let Some(len) = end.engine.transmit(now, &mut frame) {
                self.cable.send(self.now, 1 - index, &frame[..len]);
            }
            end.engine.publish(&mut |_| {});
            while let Some(completion) = self.ends[index].poll() {
                self.check(index, &completion).map_err(|what| format!("{what}: {completion:?}"))?;
            }
            self.ends[index].act(&mut self.rng);
        }
        Ok(())
    }

    fn check(&mut self, end: usize, completion: &Completion) -> Result<(), String> {
        if completion.status != WcStatus::Success {
            return Err("failed".into());
        }
        if (completion.opcode as u8) < 128 {
            return self.ends[end].complete_send(completion);
        }
        let receiver = self.ends[end].index_of(completion.qp_num).ok_or("an unknown receiver")?;
        let sender = self.ends[1 - end].index_of(completion.src_qp).ok_or("an unknown sender")?;
        let content = self.ends[end].take_receive(completion)?;
        let number = number(completion, &content)?;
        let sent = self.ends[1 - end].message(sender, number).ok_or("a message that was not sent")?;
        check_content(sent, receiver, completion, &content, &self.ends[end])?;
        self.note(end, receiver, sender, number)
    }

    fn note(&mut self, end: usize, receiver: usize, sender: usize, number: usize) -> Result<(), String> {
        let count = &mut self.arrived[end][sender][number];
        *count += 1;
        if *count > 1 && self.faults.duplication == 0.0 {
            return Err(format!("message {number} arrived twice"));
        }
        let newest = &mut self.newest[end][receiver][sender];
        let (reordered, duplicated) = (self.faults.reordering > 0.0, self.faults.duplication > 0.0);
        if newest.is_some_and(|newest| newest > number || (newest == number && !duplicated)) && !reordered {
            return Err(format!("message {number} arrived behind {newest:?}"));
        }
        *newest = Some(number);
        Ok(())
    }

    /// A byte that a WRITE may reach is as it was or as that WRITE made it: each has a place of its own.
    fn check_memory(&self) -> Result<(), String> {
        let Faults { loss, duplication, reordering, corruption } = self.faults;
        let is_perfect = loss + duplication + reordering + corruption == 0.0;
        for (index, end) in self.ends.iter().enumerate() {
            for (place, message) in self.ends[1 - index].writes() {
                let memory = memory_at(end, place, message.bytes.len());
                let suits = |(is, sent): (&u8, &u8)| is == sent || (*is == 0 && !is_perfect);
                if !memory.iter().zip(&message.bytes).all(suits) {
                    return Err(format!("the write to {place} of end {index} left other bytes"));
                }
            }
        }
        Ok(())
    }
}

/// Which message it is: its immediate tells, or its first bytes.
fn number(completion: &Completion, content: &[u8]) -> Result<usize, String> {
    let told = completion.immediate.map(|number| number as usize);
    let first = content.first_chunk().map(|bytes| u32::from_le_bytes(*bytes) as usize);
    told.or(first).ok_or_else(|| "neither immediate nor content".to_owned())
}

fn check_content(
    sent: &Message,
    receiver: usize,
    completion: &Completion,
    content: &[u8],
    end: &Party,
) -> Result<(), String> {
    let (opcode, bytes) = match sent.write {
        Some(place) => (WcOpcode::RecvRdmaWithImm, memory_at(end, place, sent.bytes.len())),
        None => (WcOpcode::Recv, content.to_vec()),
    };
    let suits = completion.opcode == opcode
        && completion.immediate == sent.immediate
        && receiver == sent.to
        && completion.byte_len as usize == end.area_before(receiver) + sent.bytes.len();
    if !suits {
        return Err("another message was sent".into());
    }
    if bytes == sent.bytes { Ok(()) } else { Err("its bytes are damaged".into()) }
}
