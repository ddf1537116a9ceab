//! Read.

use crate::fixture::Fixture;
use posse_protocol::Part;
use serde_json::json;

#[test]
fn lines_are_numbered_as_cat_does() {
    let fixture = Fixture::new();
    fixture.put("a", "one\n\ttwo\r\n\nfour");
    let text = fixture.ok("Read", json!({"file_path": "a"}));
    assert_eq!(text, "     1\tone\n     2\t\ttwo\n     3\t\n     4\tfour\n");
}

#[test]
fn a_long_file_comes_in_pieces_that_say_how_to_read_on() {
    let fixture = Fixture::new();
    let lines: Vec<String> = (1..=4500).map(|line| format!("line {line}")).collect();
    fixture.put("a", lines.join("\n"));
    let first = fixture.ok("Read", json!({"file_path": "a"}));
    assert!(first.contains("  2000\tline 2000\n") && !first.contains("line 2001"));
    assert!(first.ends_with("[Lines 1-2000 of 4500. Read on with offset=2001.]\n"));
    let last = fixture.ok("Read", json!({"file_path": "a", "offset": 4001}));
    assert!(last.starts_with("  4001\tline 4001\n") && last.ends_with("  4500\tline 4500\n"));
    let two = fixture.ok("Read", json!({"file_path": "a", "offset": 10, "limit": 2}));
    assert_eq!(
        two,
        "    10\tline 10\n    11\tline 11\n[Lines 10-11 of 4500. Read on with offset=12.]\n"
    );
    fixture.refused("Read", json!({"file_path": "a", "offset": 4501}), &["has 4500 lines"]);
    assert!(
        fixture.ok("Read", json!({"file_path": "a", "offset": 0, "limit": 1})).contains("line 1\n")
    );
}

#[test]
fn a_long_line_is_cut_and_says_so() {
    let fixture = Fixture::new();
    fixture.put("a", format!("{}\nshort\n", "ü".repeat(2005)));
    let text = fixture.ok("Read", json!({"file_path": "a"}));
    let expected = format!("     1\t{} [5 more characters in this line]\n", "ü".repeat(2000));
    assert_eq!(text, format!("{expected}     2\tshort\n"));
}

#[test]
fn a_result_has_a_size_cap_that_says_how_to_read_on() {
    let fixture = Fixture::new();
    fixture.put("a", format!("{}\n", "x".repeat(1999)).repeat(500));
    let text = fixture.ok("Read", json!({"file_path": "a"}));
    assert!(text.len() < 101_000, "{}", text.len());
    assert!(text.contains("of 500. Read on with offset=50"), "{}", &text[text.len() - 80..]);
}

#[test]
fn an_empty_file_says_so() {
    let fixture = Fixture::new();
    fixture.put("a", "");
    assert_eq!(fixture.ok("Read", json!({"file_path": "a"})), "[a is empty]");
}

#[test]
fn a_binary_file_is_named_with_size_and_kind() {
    let fixture = Fixture::new();
    fixture.put("a", b"\x7FELF\x02\x01\x01\0\0\0");
    let text = fixture.ok("Read", json!({"file_path": "a"}));
    assert!(text.contains("binary file of 10 bytes: an ELF executable"), "{text}");
    fixture.put("b", b"a\0b");
    assert!(fixture.ok("Read", json!({"file_path": "b"})).contains("unknown kind"));
}

#[test]
fn images_come_back_as_images_up_to_a_size() {
    let fixture = Fixture::new();
    for (bytes, media) in [
        (&b"\x89PNG\r\n\x1A\nrest"[..], "image/png"),
        (b"\xFF\xD8\xFF\xE0rest", "image/jpeg"),
        (b"GIF89arest", "image/gif"),
        (b"RIFF\x01\0\0\0WEBPrest", "image/webp"),
    ] {
        fixture.put("image", bytes);
        let output = fixture.call("Read", json!({"file_path": "image"}));
        let [Part::Image { media_type, data }] = &output.parts[..] else { panic!("{output:?}") };
        assert_eq!(media_type, media);
        assert!(!output.is_error && !data.is_empty());
    }
    let mut large = b"\x89PNG\r\n\x1A\n".to_vec();
    large.resize(6 << 20, 1);
    fixture.put("large", large);
    assert!(fixture.ok("Read", json!({"file_path": "large"})).contains("too large to be shown"));
}

#[test]
fn a_pdf_comes_back_as_a_document_up_to_a_size() {
    let fixture = Fixture::new();
    fixture.put("paper.pdf", b"%PDF-1.7\n\x00rest");
    let output = fixture.call("Read", json!({"file_path": "paper.pdf"}));
    let [Part::Document { media_type, name, data }] = &output.parts[..] else {
        panic!("{output:?}")
    };
    assert_eq!((media_type.as_str(), name.as_str()), ("application/pdf", "paper.pdf"));
    assert!(!output.is_error && !data.is_empty());
    let mut large = b"%PDF-1.7\n".to_vec();
    large.resize(6 << 20, 0);
    fixture.put("large.pdf", large);
    assert!(fixture.ok("Read", json!({"file_path": "large.pdf"})).contains("too large to be sent"));
}

#[test]
fn odd_encodings_are_decoded_and_named() {
    let fixture = Fixture::new();
    let check = |bytes: &[u8], text: &str, name: &str| {
        fixture.put("a", bytes);
        let shown = fixture.ok("Read", json!({"file_path": "a"}));
        assert!(shown.starts_with(&format!("     1\t{text}\n")), "{shown:?}");
        assert!(shown.contains(name), "{shown:?}");
    };
    check(b"\xEF\xBB\xBFhi\n", "hi", "UTF-8 with a byte order mark");
    check(b"\xFF\xFEh\0\xFC\0\n\0", "hü", "UTF-16 (little endian)");
    check(b"\xFE\xFF\0h\0\xFC\0\n", "hü", "UTF-16 (big endian)");
    check(b"gr\xFC\xDFe\n", "grüße", "windows-1252");
}

#[test]
fn a_very_large_file_is_read_piece_by_piece() {
    let fixture = Fixture::new();
    let mut large = "0123456789abcdef\n".repeat(1_000_000);
    large.push_str(&"y".repeat(100_000));
    fixture.put("a", large);
    let first = fixture.ok("Read", json!({"file_path": "a", "limit": 1}));
    assert!(
        first.starts_with("     1\t0123456789abcdef\n[Lines 1-1 of a file of 17.1 MB"),
        "{first}"
    );
    assert!(first.contains("Read on with offset=2."));
    let last = fixture.ok("Read", json!({"file_path": "a", "offset": 1_000_000}));
    assert!(last.contains("1000001\tyyy") && last.contains("The end of a file"), "{last}");
    fixture.refused("Read", json!({"file_path": "a", "offset": 1_000_002}), &["1000001 lines"]);
    let edit = json!({"file_path": "a", "old_string": "a", "new_string": "b"});
    fixture.refused("Edit", edit, &["larger than 10.5 MB", "Bash"]);
}
