//! All scenarios between two uRoCE devices on a cable in memory: they need no privileges and no guest.

use std::net::IpAddr;

use uroce::{Context, DeviceConfig, Link, MacAddr};
use uroce_conformance::own::{Device, Own};
use uroce_conformance::report;
use uroce_conformance::runner::{self, Filter};
use uroce_conformance::watchdog::{self, Watchdog};
use uroce_nic::{Cable, cable};

fn mac(number: u8) -> MacAddr {
    MacAddr([2, 0, 0, 0, 0, number])
}

fn addresses(number: u8) -> [IpAddr; 2] {
    [IpAddr::from([10, 0, 0, number]), IpAddr::from([0xfd00, 0, 0, 0, 0, 0, 0, u16::from(number)])]
}

fn open(end: Cable, number: u8) -> Context {
    let other = 3 - number;
    let link = Link {
        mac: mac(number),
        addresses: addresses(number).to_vec(),
        mtu: 4200,
        neighbours: addresses(other).map(|address| (address, mac(other))).to_vec(),
    };
    Context::open(DeviceConfig::with_nic(Box::new(end), link)).expect("a cable can be opened")
}

#[test]
fn every_scenario_passes_between_two_of_us() {
    let (left, right) = cable::pair_with_fd(256, 4300).expect("a cable can be made");
    let mut left = Own::new(Device::fixed(open(left, 1)), 0xff_fff0);
    let mut right = Own::new(Device::fixed(open(right, 2)), 0x7f_fff0);
    let mut cells = Vec::new();
    let watchdog = Watchdog::new(watchdog::LIMIT, |cell| panic!("{}", report::row(&[cell])));
    runner::run(&mut left, &mut right, &Filter::default(), &watchdog, |row| {
        println!("{}", report::row(row));
        cells.extend_from_slice(row);
    });
    assert!(cells.len() > 300, "only {} cells", cells.len());
    assert_eq!(report::failed(&cells), 0, "{}", report::closing(&cells));
}
