//! Parsing and emitting packets: headers, ICRC and, when emitting, the copy of the payload.

use std::convert::Infallible;
use std::env;
use std::hint::black_box;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group};
use uroce_benches::best_of;
use uroce_stack::memory::{Crc, copy_out};
use uroce_stack::wire::{
    Aeth, Bth, Class, MacAddr, Mtu, Opcode, Operation, Packet, Path, Position, Psn, Qpn, Reth, Service,
    Syndrome, Template, emit,
};

/// Headers, the largest payload, pad bytes and ICRC.
const FRAME: usize = 4352;

/// One kind of packet and all it takes to send it.
struct Case {
    name: &'static str,
    template: Template,
    operation: Operation,
    opcode: Opcode,
    payload: Vec<u8>,
}

impl Case {
    fn new(
        name: &'static str,
        source: IpAddr,
        destination: IpAddr,
        operation: Operation,
        len: usize,
    ) -> Self {
        let path = Path {
            source_mac: MacAddr([2, 0, 0, 0, 0, 1]),
            destination_mac: MacAddr([2, 0, 0, 0, 0, 2]),
            vlan: None,
            source,
            destination,
            source_port: 0xC000,
            traffic_class: 0,
            hop_limit: 64,
            flow_label: 0,
        };
        Self {
            name,
            template: Template::new(&path).expect("addresses of one version"),
            operation,
            opcode: operation.opcode(Service::Rc).expect("an operation of reliable connections"),
            payload: (0..len).map(|at| (at * 7) as u8).collect(),
        }
    }

    /// The packet into `frame`, its payload read from memory as that of a region is.
    fn emit(&self, frame: &mut [u8], psn: Psn) -> usize {
        let bth = Bth::new(Qpn::new(17), psn);
        let fill = |out: &mut [u8], crc: Crc| {
            // SAFETY: `out` is as long as the payload, and apart.
            Ok::<_, Infallible>(unsafe { copy_out(out, self.payload.as_ptr(), crc) })
        };
        let ident = psn.get() as u16;
        let Ok(len) = emit(
            frame,
            &self.template,
            ident,
            &bth,
            self.opcode,
            &Class::Rc,
            &self.operation,
            self.payload.len(),
            fill,
        );
        len
    }
}

fn cases() -> Vec<Case> {
    let v4 = [1, 2].map(|host| IpAddr::V4(Ipv4Addr::new(10, 0, 0, host)));
    let v6 = [1, 2].map(|host| IpAddr::V6(Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, host)));
    let acknowledge = Operation::Acknowledge(Aeth { syndrome: Syndrome::UNLIMITED, msn: 1 });
    let send = Operation::Send { position: Position::Only, immediate: None, invalidate: None };
    let write = |len: Mtu| {
        let reth = Reth { va: 0x7f00_0000_1000, rkey: 0x1234, length: len.bytes() as u32 };
        Operation::Write { position: Position::Only, reth: Some(reth), immediate: None }
    };
    let middle = Operation::Write { position: Position::Middle, reth: None, immediate: None };
    vec![
        Case::new("acknowledge", v4[0], v4[1], acknowledge, 0),
        Case::new("acknowledge_v6", v6[0], v6[1], acknowledge, 0),
        Case::new("send_only_64", v4[0], v4[1], send, 64),
        Case::new("write_only_1024", v4[0], v4[1], write(Mtu::B1024), 1024),
        Case::new("write_only_4096", v4[0], v4[1], write(Mtu::B4096), 4096),
        Case::new("write_middle_4096", v4[0], v4[1], middle, 4096),
        Case::new("write_middle_4096_v6", v6[0], v6[1], middle, 4096),
    ]
}

fn wire(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("emit");
    for case in cases() {
        let mut frame = [0; FRAME];
        let mut psn = Psn::new(0);
        group.throughput(Throughput::Elements(1));
        group.bench_function(BenchmarkId::from_parameter(case.name), |bencher| {
            bencher.iter(|| {
                psn = psn.next();
                case.emit(black_box(&mut frame), psn)
            });
        });
    }
    group.finish();

    let mut group = criterion.benchmark_group("parse");
    for case in cases() {
        let mut frame = [0; FRAME];
        let len = case.emit(&mut frame, Psn::new(0));
        Packet::parse(&frame[..len], &[]).expect("what was emitted");
        group.throughput(Throughput::Elements(1));
        group.bench_function(BenchmarkId::from_parameter(case.name), |bencher| {
            bencher.iter(|| Packet::parse(black_box(&frame[..len]), &[]).is_ok());
        });
    }
    group.finish();
}

fn print_best() {
    println!("\nns a packet in the best round: emit, parse");
    for case in cases() {
        let mut frame = [0; FRAME];
        let mut psn = Psn::new(0);
        let emit = best_of(|| {
            psn = psn.next();
            black_box(case.emit(black_box(&mut frame), psn));
        });
        let len = case.emit(&mut frame, psn);
        let parse = best_of(|| {
            black_box(Packet::parse(black_box(&frame[..len]), &[]).is_ok());
        });
        println!("{:>20} {emit:>7.1} {parse:>7.1}", case.name);
    }
}

criterion_group!(benches, wire);

fn main() {
    benches();
    Criterion::default().configure_from_args().final_summary();
    if !env::args().any(|arg| arg == "--test" || arg == "--list") {
        print_best();
    }
}
