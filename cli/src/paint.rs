//! Colours, when they are wanted.

#[derive(Clone, Copy)]
pub struct Paint {
    pub on: bool,
}

impl Paint {
    fn with(self, code: &str, text: &str) -> String {
        match self.on {
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

    /// In the colour that an agent asks for, by name; in cyan if it asks for none that is known.
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

    pub fn green(self, text: &str) -> String {
        self.with("32", text)
    }
}
