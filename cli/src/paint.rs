//! Colours, if the terminal and the user want them.

#[derive(Clone, Copy, Debug)]
pub struct Paint {
    pub on: bool,
}

impl Paint {
    /// `text` in the colours and styles of `code`, the numbers for a terminal; plain if it is empty.
    pub fn with(self, code: &str, text: &str) -> String {
        match self.on && !code.is_empty() {
            true => format!("\x1b[{code}m{text}\x1b[0m"),
            false => text.to_owned(),
        }
    }

    pub fn dim(self, text: &str) -> String {
        self.with("2", text)
    }

    pub fn red(self, text: &str) -> String {
        self.with("31", text)
    }

    pub fn yellow(self, text: &str) -> String {
        self.with("33", text)
    }

    /// `text` in the colour with this name, which an agent asks for; cyan if the name is unknown.
    pub fn agent(self, color: &str, text: &str) -> String {
        let code = match color.trim().to_ascii_lowercase().as_str() {
            "red" => "31",
            "green" => "32",
            "yellow" => "33",
            "blue" => "34",
            "purple" | "magenta" => "35",
            "orange" => "38;5;208",
            "pink" => "38;5;205",
            "white" => "37",
            "gray" | "grey" => "90",
            _ => "36",
        };
        self.with(code, text)
    }

    /// `text` as the selected item.
    pub fn chosen(self, text: &str) -> String {
        self.with("7", text)
    }

    pub fn green(self, text: &str) -> String {
        self.with("32", text)
    }
}
