//! Classifies addresses by the registries of special addresses.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, UdpSocket};

/// The kind of an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// On the public internet.
    Public,
    /// In a private network, such as that of a company, a home or a carrier.
    Private,
    /// This machine.
    Loopback,
    /// Unassigned, multicast, or infrastructure of the hosting provider. Never contacted.
    Never,
}

/// Addresses outside the link-local range at which hosting providers hand out secrets.
const METADATA: [IpAddr; 3] = [
    IpAddr::V4(Ipv4Addr::new(100, 100, 100, 200)),
    IpAddr::V4(Ipv4Addr::new(168, 63, 129, 16)),
    IpAddr::V6(Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254)),
];

/// Returns the kind of `address` for this machine, which may have private and public addresses of its own.
pub fn class_here(address: IpAddr) -> Class {
    match class_of(address) {
        Class::Public | Class::Private if is_own(address) => Class::Loopback,
        class => class,
    }
}

/// True if the kernel would deliver to this machine itself: it sends from the same address then. Nothing is
/// sent.
fn is_own(address: IpAddr) -> bool {
    const ANY_PORT: u16 = 9;
    let address = address.to_canonical();
    let from: IpAddr = match address {
        IpAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        IpAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    UdpSocket::bind((from, 0))
        .and_then(|socket| {
            socket.connect((address, ANY_PORT))?;
            socket.local_addr()
        })
        .is_ok_and(|local| local.ip() == address)
}

/// Returns the kind that `address` has everywhere. An address that embeds another has the kind of the embedded one.
pub fn class_of(address: IpAddr) -> Class {
    if METADATA.contains(&address) {
        return Class::Never;
    }
    match address {
        IpAddr::V4(address) => class_of_v4(address),
        IpAddr::V6(address) => class_of_v6(address),
    }
}

fn class_of_v4(address: Ipv4Addr) -> Class {
    match address.octets() {
        [127, ..] => Class::Loopback,
        [10, ..] | [192, 168, ..] | [172, 16..=31, ..] | [100, 64..=127, ..] => Class::Private,
        // This network; link-local; protocols; documentation; relays; benchmarks; multicast; reserved.
        [0, ..]
        | [169, 254, ..]
        | [192, 0, 0 | 2, _]
        | [198, 51, 100, _]
        | [203, 0, 113, _]
        | [192, 88, 99, _]
        | [198, 18..=19, ..]
        | [224..=255, ..] => Class::Never,
        _ => Class::Public,
    }
}

fn class_of_v6(address: Ipv6Addr) -> Class {
    if address == Ipv6Addr::LOCALHOST {
        return Class::Loopback;
    }
    let within = |high: u16, low: u16| {
        let [a, b] = high.to_be_bytes();
        let [c, d] = low.to_be_bytes();
        class_of(Ipv4Addr::new(a, b, c, d).into())
    };
    match address.segments() {
        // Mapped, compatible, translated, and tunnelled: these embed an IPv4 address.
        [0, 0, 0, 0, 0, 0xffff, high, low]
        | [0x64, 0xff9b, 0, 0, 0, 0, high, low]
        | [0x2002, high, low, ..] => within(high, low),
        [0, 0, 0, 0, 0, 0, high, low] if high > 0 => within(high, low),
        [0xfc00..=0xfdff, ..] => Class::Private,
        // Protocols and Teredo, documentation.
        [0x2001, 0..=0x1ff, ..] | [0x2001, 0xdb8, ..] | [0x3fff, 0..=0xfff, ..] => Class::Never,
        [0x2000..=0x3fff, ..] => Class::Public,
        // The rest is link-local, multicast, or unassigned.
        _ => Class::Never,
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn an_address_of_this_machine_is_this_machine() {
        // How this machine would send to a network that only documents use.
        let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).unwrap();
        if socket.connect(("192.0.2.1", 9)).is_ok() {
            let own = socket.local_addr().unwrap().ip();
            assert!(is_own(own) && !is_own("1.1.1.1".parse().unwrap()), "{own}");
            if class_of(own) != Class::Never {
                assert_eq!(class_here(own), Class::Loopback, "{own}");
            }
        }
        assert_eq!(class_here("127.0.0.1".parse().unwrap()), Class::Loopback);
        assert_eq!(class_here("1.1.1.1".parse().unwrap()), Class::Public);
        assert_eq!(class_here("169.254.169.254".parse().unwrap()), Class::Never);
    }

    #[test]
    fn every_special_address_is_known() {
        let table = [
            (Class::Public, "1.1.1.1 93.184.216.34 172.15.0.1 172.32.0.1 100.63.0.1 100.128.0.1"),
            (Class::Public, "192.0.1.1 198.17.0.1 198.20.0.1 223.255.255.255 169.253.1.1"),
            (Class::Public, "2606:4700::1111 2a00:1450::1 ::ffff:1.1.1.1 64:ff9b::101:101"),
            (Class::Private, "10.0.0.1 172.16.0.1 172.31.255.255 192.168.0.1 100.64.0.1"),
            (Class::Private, "fc00::1 fd12::1 ::ffff:192.168.0.1 2002:a00:1:: 64:ff9b::a00:1"),
            (Class::Loopback, "127.0.0.1 127.255.255.255 ::1 ::ffff:127.0.0.1 ::127.0.0.1"),
            (Class::Never, "0.0.0.0 0.1.2.3 169.254.169.254 192.0.0.1 192.0.2.1 198.18.0.1"),
            (Class::Never, "198.51.100.1 203.0.113.1 224.0.0.1 239.1.1.1 240.0.0.1"),
            (Class::Never, "255.255.255.255 192.88.99.1 100.100.100.200 168.63.129.16"),
            (Class::Never, ":: ::2 fe80::1 fec0::1 ff02::1 2001:db8::1 2001::1 2001:10::1"),
            (Class::Never, "100::1 64:ff9b:1::1 fd00:ec2::254 ::ffff:169.254.169.254 3fff::1"),
            (Class::Never, "::ffff:100.100.100.200 4000::1 5f00::1"),
        ];
        for (expected, addresses) in table {
            for text in addresses.split(' ') {
                let address: IpAddr = text.parse().unwrap();
                assert_eq!(class_of(address), expected, "{text}");
            }
        }
    }
}
