//! Every operation, with and without a thread behind it.

mod common;

use common::{both_kinds, next, pattern, region, succeed};
use uroce::{Access, RecvWr, SendWr, WcFlags, WcOpcode, WcStatus};

#[test]
fn a_send_fills_the_next_receive() {
    for pair in both_kinds() {
        let (a, b) = &pair;
        let (outbox, inbox) = (region(a, b"hello"), region(b, &[0; 16]));
        b.qp.post_recv(&[RecvWr::new(7, inbox.sge(4..))]).expect("a receive");
        a.qp.post_send(&[SendWr::send(8, outbox.sge(..)).signaled()]).expect("a send");
        let sent = succeed(&pair, &a.cq);
        assert_eq!((sent.wr_id, sent.opcode, sent.qp_num), (8, WcOpcode::Send, a.qp.qpn()));
        let received = succeed(&pair, &b.cq);
        assert_eq!((received.wr_id, received.opcode, received.byte_len), (7, WcOpcode::Recv, 5));
        assert_eq!((received.qp_num, received.immediate), (b.qp.qpn(), None));
        assert_eq!(inbox.to_vec(..).expect("all of it"), b"\0\0\0\0hello\0\0\0\0\0\0\0");
    }
}

#[test]
fn an_immediate_arrives_in_host_order() {
    for pair in both_kinds() {
        let (a, b) = &pair;
        b.qp.post_recv(&[RecvWr::new(1, []), RecvWr::new(2, [])]).expect("receives");
        let target = region(b, &[0; 64]);
        let write = SendWr::rdma_write_inline(2, b"bytes", target.remote().at(8)).imm(0x0102_0304);
        a.qp.post_send(&[SendWr::send(1, []).imm(0xdead_beef), write.signaled()]).expect("two requests");
        let send = succeed(&pair, &b.cq);
        assert_eq!((send.opcode, send.immediate, send.byte_len), (WcOpcode::Recv, Some(0xdead_beef), 0));
        assert!(send.flags.contains(WcFlags::WITH_IMM));
        let write = succeed(&pair, &b.cq);
        assert_eq!((write.wr_id, write.opcode), (2, WcOpcode::RecvRdmaWithImm));
        assert_eq!((write.immediate, write.byte_len), (Some(0x0102_0304), 5));
        assert_eq!(target.to_vec(8..13).expect("written"), b"bytes");
        assert_eq!(succeed(&pair, &a.cq).opcode, WcOpcode::RdmaWrite);
    }
}

#[test]
fn writes_and_reads_of_every_size_carry_every_byte() {
    for pair in both_kinds() {
        let (a, b) = &pair;
        for length in [0, 1, 4095, 4096, 4097, 100_000, 1 << 20] {
            let (source, back) = (region(a, &pattern(length.max(1))), region(a, &vec![0; length.max(1)]));
            let target = region(b, &vec![0; length.max(1)]);
            let write = SendWr::rdma_write(1, source.sge(..length), target.remote()).signaled();
            let read = SendWr::rdma_read(2, back.sge(..length), target.remote()).signaled();
            a.qp.post_send(&[write, read]).expect("two requests");
            assert_eq!(succeed(&pair, &a.cq).opcode, WcOpcode::RdmaWrite);
            let read = succeed(&pair, &a.cq);
            assert_eq!((read.opcode, read.byte_len as usize), (WcOpcode::RdmaRead, length));
            assert_eq!(back.to_vec(..length).expect("read"), pattern(length), "{length} bytes");
        }
    }
}

#[test]
fn entries_are_gathered_and_scattered_in_order() {
    for pair in both_kinds() {
        let (a, b) = &pair;
        let (source, target) = (region(a, b"abcdefgh"), region(b, &[b'.'; 8]));
        b.qp.post_recv(&[RecvWr::new(1, [target.sge(6..8), target.sge(0..4)])]).expect("a receive");
        let send = SendWr::send(1, [source.sge(4..6), source.sge(0..0), source.sge(0..3)]);
        a.qp.post_send(&[send.signaled()]).expect("a send");
        assert_eq!(succeed(&pair, &b.cq).byte_len, 5);
        assert_eq!(target.to_vec(..).expect("all of it"), b"abc...ef");
        succeed(&pair, &a.cq);
    }
}

#[test]
fn atomics_agree_with_the_local_processor() {
    for pair in both_kinds() {
        let (a, b) = &pair;
        let (result, word) = (region(a, &[0; 16]), region(b, &[0; 16]));
        word.store_u64(8, 40).expect("an aligned word");
        let on = word.remote().at(8);
        let add = SendWr::fetch_and_add(1, result.sge(..8), on, 2).signaled();
        let swap = SendWr::cmp_and_swp(2, result.sge(8..), on, 42, u64::MAX).signaled();
        a.qp.post_send(&[add, swap]).expect("two atomics");
        assert_eq!(succeed(&pair, &a.cq).opcode, WcOpcode::FetchAdd);
        let swapped = succeed(&pair, &a.cq);
        assert_eq!((swapped.opcode, swapped.byte_len), (WcOpcode::CompSwap, 8));
        assert_eq!((result.load_u64(0).expect("a word"), result.load_u64(8).expect("a word")), (40, 42));
        assert_eq!(word.fetch_add_u64(8, 3).expect("a word"), u64::MAX);
        assert_eq!(word.compare_exchange(8, 2, 5).expect("a word"), Ok(2), "the sum wraps");
        assert_eq!(word.compare_exchange(8, 2, 6).expect("a word"), Err(5));
    }
}

#[test]
fn unsignaled_requests_bring_no_completion() {
    for pair in both_kinds() {
        let (a, b) = &pair;
        let target = region(b, &[0; 8]);
        let quiet = |id| SendWr::rdma_write_inline(id, b"x", target.remote());
        a.qp.post_send(&[quiet(1), quiet(2), quiet(3).signaled()]).expect("three writes");
        assert_eq!(succeed(&pair, &a.cq).wr_id, 3);
        assert_eq!(a.cq.poll(&mut [Default::default(); 4]), 0);
    }
}

#[test]
fn a_batch_is_posted_whole_or_not_at_all() {
    for pair in both_kinds() {
        let (a, b) = &pair;
        b.qp.post_recv(&[RecvWr::new(1, []), RecvWr::new(2, [])]).expect("receives");
        let mut forgotten = a.qp.start_send();
        forgotten.push(&SendWr::send(9, []).signaled()).expect("room");
        drop(forgotten);
        let mut batch = a.qp.start_send();
        assert!(batch.is_empty());
        batch.push(&SendWr::send(1, []).signaled()).expect("room");
        let refused = batch.push(&SendWr::rdma_read(9, [], target_of(b)).imm(1));
        assert!(refused.is_err(), "a READ has no immediate");
        batch.push(&SendWr::send(2, []).signaled()).expect("room");
        assert_eq!(batch.len(), 2);
        batch.submit();
        assert_eq!([succeed(&pair, &a.cq).wr_id, succeed(&pair, &a.cq).wr_id], [1, 2]);
        assert_eq!([succeed(&pair, &b.cq).wr_id, succeed(&pair, &b.cq).wr_id], [1, 2]);
    }
}

fn target_of(end: &uroce::testing::Connected) -> uroce::RemoteMr {
    region(end, &[0; 8]).remote()
}

#[test]
fn a_request_that_does_not_fit_is_named_and_those_before_it_are_posted() {
    for pair in both_kinds() {
        let (a, b) = &pair;
        b.qp.post_recv(&[RecvWr::new(1, [])]).expect("a receive");
        let long = SendWr::send_inline(2, &[0; 257]);
        let error =
            a.qp.post_send(&[SendWr::send(1, []).signaled(), long, SendWr::send(3, [])])
                .expect_err("too long");
        assert_eq!(error.index, 1);
        assert_eq!(succeed(&pair, &a.cq).wr_id, 1);
        let many =
            vec![SendWr::send(4, []); a.qp.query().expect("its attributes").1.max_send_wr as usize + 1];
        let error = a.qp.post_send(&many).expect_err("the queue is full");
        assert_eq!((error.kind, error.index), (uroce::PostErrorKind::QueueFull, many.len() - 1));
    }
}

#[test]
fn scoped_memory_is_revoked_when_the_scope_ends() {
    for pair in both_kinds() {
        let (a, b) = &pair;
        let (mut buffer, fixed) = (vec![0; 32], *b"fixed bytes");
        let remote = b.pd.scope(|scope| {
            let target =
                scope.reg_mr(&mut buffer, Access::LOCAL_WRITE | Access::REMOTE_WRITE).expect("a region");
            a.pd.scope(|inner| {
                let source = inner.reg_mr_readonly(&fixed).expect("a region");
                assert!(matches!(source.write_at(0, b"x"), Err(uroce::Error::ReadOnly)));
                let write = SendWr::rdma_write(1, source.sge(..), target.remote()).signaled();
                a.qp.post_send(&[write]).expect("a write");
                succeed(&pair, &a.cq);
            });
            std::mem::forget(scope.reg_mr_readonly(&[1]).expect("a region"));
            target.remote()
        });
        assert_eq!(&buffer[..11], b"fixed bytes");
        a.qp.post_send(&[SendWr::rdma_write_inline(2, b"late", remote)]).expect("a write");
        assert_eq!(next(&pair, &a.cq).status, WcStatus::RemAccessErr);
        assert_eq!(&buffer[..11], b"fixed bytes");
    }
}

#[test]
fn raw_memory_has_the_addresses_asked_for() {
    for pair in both_kinds() {
        let (a, b) = &pair;
        let mut memory = vec![0_u8; 4096];
        // SAFETY: the vector outlives the region, which is dropped below, and is not touched until then.
        let target =
            unsafe { b.pd.reg_mr_raw_iova(memory.as_mut_ptr(), memory.len(), 0x10_0000, common::ALL) };
        let target = target.expect("a region");
        assert_eq!((target.addr(), target.remote().addr), (0x10_0000, 0x10_0000));
        let write = SendWr::rdma_write_inline(1, b"by iova", target.remote().at(100)).signaled();
        a.qp.post_send(&[write]).expect("a write");
        succeed(&pair, &a.cq);
        drop(target);
        assert_eq!(&memory[100..107], b"by iova");
    }
}
