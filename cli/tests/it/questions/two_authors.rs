//! A repository with a history of two authors: Ruby, a shell script, YAML.

use super::{Asked, Commit, Repository, ask};

pub fn repository() -> Repository {
    Repository { name: "two-authors", files: &[], commits: COMMITS, asked: asked() }
}

const COMMITS: &[Commit] = &[
    Commit {
        author: "Ines Marlow",
        date: "2024-02-03T10:00:00Z",
        message: "Begin the almanac",
        files: &[
            (
                "README.md",
                "# Almanac\n\nSunrise, sunset and phases of the moon, as a Ruby gem and a small page.\n\n## Usage\n\n```ruby\nAlmanac::Sun.new(52.5, 13.4).rise(Date.today)\n```\n",
            ),
            (
                "Gemfile",
                "source \"https://rubygems.org\"\n\ngemspec\n\ngem \"sinatra\", \"~> 4.0\"\n\ngroup :test do\n  gem \"minitest\"\nend\n",
            ),
            (
                "Rakefile",
                "require \"rake/testtask\"\n\nRake::TestTask.new(:test) do |task|\n  task.pattern = \"test/**/*_test.rb\"\nend\n\ntask default: :test\n",
            ),
            (
                "lib/almanac/sun.rb",
                "module Almanac\n  # Rise and set of the sun at a place.\n  class Sun\n    ZENITH = 90.833\n\n    def initialize(latitude, longitude)\n      @latitude = latitude\n      @longitude = longitude\n    end\n\n    def rise(date)\n      hour_angle(date)\n    end\n\n    private\n\n    def hour_angle(date)\n      date.yday * ZENITH\n    end\n  end\nend\n",
            ),
        ],
    },
    Commit {
        author: "Jonas Okafor",
        date: "2024-05-20T16:30:00Z",
        message: "Phases of the moon",
        files: &[
            (
                "lib/almanac/moon.rb",
                "module Almanac\n  class Moon\n    SYNODIC_DAYS = 29.530588\n\n    def self.phase(date)\n      age = (date.jd - 2_451_550.1) % SYNODIC_DAYS\n      name_of(age)\n    end\n\n    def self.name_of(age)\n      age < 14 ? :waxing : :waning\n    end\n  end\nend\n",
            ),
            (
                "test/moon_test.rb",
                "require \"minitest/autorun\"\nrequire \"almanac/moon\"\n\nclass MoonTest < Minitest::Test\n  def test_a_young_moon_waxes\n    assert_equal :waxing, Almanac::Moon.name_of(3)\n  end\nend\n",
            ),
        ],
    },
    Commit {
        author: "Ines Marlow",
        date: "2024-09-01T08:15:00Z",
        message: "Correct the zenith and add a release script",
        files: &[
            (
                "lib/almanac/sun.rb",
                "module Almanac\n  # Rise and set of the sun at a place.\n  class Sun\n    ZENITH = 90.8333\n\n    def initialize(latitude, longitude)\n      @latitude = latitude\n      @longitude = longitude\n    end\n\n    def rise(date)\n      hour_angle(date)\n    end\n\n    private\n\n    def hour_angle(date)\n      date.yday * ZENITH\n    end\n  end\nend\n",
            ),
            (
                "bin/release",
                "#!/bin/bash\nset -euo pipefail\n\ntag_version() {\n  git tag \"v$1\"\n}\n\ntag_version \"$1\"\ngem build almanac.gemspec\n",
            ),
            (
                "config/places.yml",
                "berlin:\n  latitude: 52.5\n  longitude: 13.4\nlagos:\n  latitude: 6.5\n  longitude: 3.4\n",
            ),
        ],
    },
];

fn asked() -> Vec<Asked> {
    vec![
        ask("who changed lib/almanac/sun.rb last?")
            .says(&["Ines Marlow: Correct the zenith", "It was added in"]),
        ask("Who wrote the Moon class").says(&["Jonas Okafor"]),
        ask("what were the most recent commits")
            .says(&["The latest commits", "Correct the zenith"]),
        ask("when was the release script added?").says(&["2024-09-01", "`bin/release`"]),
        ask("who contributes to this repository").says(&["Jonas Okafor", "Commits by author"]),
        ask("which files changed in the last commit?").says(&["The last commit and its files:"]),
        ask("how many commits are there?").says(&["3 commits"]),
        ask("when was the parser changed?").says(&["no single file has *parser*"]).never(&["Ines"]),
        ask("is name_of tested?").says(&["`test/moon_test.rb:6` in `test_a_young_moon_waxes`"]),
        ask("how do I run the test suite").says(&["`rake test`"]),
        ask("which gems does it need?").says(&["`sinatra` ~> 4.0"]),
    ]
}
