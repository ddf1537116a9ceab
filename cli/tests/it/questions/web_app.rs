//! A web application in TypeScript: bookings of a restaurant.

use super::{Asked, Repository, ask};

pub fn repository() -> Repository {
    Repository { name: "web-app", files: FILES, commits: &[], asked: asked() }
}

const FILES: &[(&str, &str)] = &[
    (
        "package.json",
        r#"{
  "name": "tablekeeper",
  "version": "2.1.0",
  "description": "Bookings for small restaurants",
  "private": true,
  "scripts": {
    "dev": "vite",
    "build": "tsc -b && vite build",
    "start": "node dist/server/index.js",
    "test": "vitest run",
    "lint": "eslint src"
  },
  "dependencies": {
    "express": "^4.21.0",
    "react": "^18.3.1",
    "zod": "^3.23.8"
  },
  "devDependencies": {
    "typescript": "^5.6.2",
    "vite": "^5.4.8",
    "vitest": "^2.1.1"
  }
}
"#,
    ),
    (
        "package-lock.json",
        "{\n  \"name\": \"tablekeeper\",\n  \"lockfileVersion\": 3,\n  \"packages\": {\n    \"node_modules/express\": {\"version\": \"4.21.0\"},\n    \"node_modules/bookTable\": {\"version\": \"1.0.0\"}\n  }\n}\n",
    ),
    (
        "README.md",
        r#"<p align="center"><img src="logo.svg"></p>

[![build](https://example.org/badge.svg)](https://example.org)

# Tablekeeper

A booking page for small restaurants: guests pick a time, the kitchen sees a list.

## Development

Install with `npm ci`, then start the development server with `npm run dev`.

## Deploying

The image is built by CI; `docker compose up -d` starts it on port 8080.
"#,
    ),
    (
        "src/server/index.ts",
        r#"import express from "express";
import { bookingsRouter } from "./bookings";
import { requireSession } from "./session";

const app = express();
const port = Number(process.env.PORT ?? 8080);

app.use(express.json());
app.use("/api/bookings", requireSession, bookingsRouter);

app.listen(port, () => console.log(`listening on ${port}`));
"#,
    ),
    (
        "src/server/bookings.ts",
        r#"import { Router } from "express";
import { z } from "zod";
import { findFreeTable } from "../shared/tables";

export const bookingSchema = z.object({
  name: z.string().min(1),
  guests: z.number().int().positive().max(12),
  at: z.string().datetime(),
});

export const bookingsRouter = Router();

bookingsRouter.post("/", (request, response) => {
  const booking = bookingSchema.parse(request.body);
  const table = findFreeTable(booking.guests, new Date(booking.at));
  if (!table) {
    // TODO: offer the next free hour instead of refusing
    response.status(409).json({ error: "fully booked" });
    return;
  }
  response.status(201).json({ table: table.number });
});

bookingsRouter.delete("/:id", (request, response) => {
  response.status(204).end();
});
"#,
    ),
    (
        "src/server/session.ts",
        r#"import type { NextFunction, Request, Response } from "express";

const COOKIE_NAME = "tk_session";

/** Lets a request through only if it carries a valid session cookie. */
export function requireSession(request: Request, response: Response, next: NextFunction) {
  const token = readCookie(request.headers.cookie ?? "", COOKIE_NAME);
  if (!token || !isSigned(token)) {
    response.status(401).end();
    return;
  }
  next();
}

function readCookie(header: string, name: string): string | undefined {
  return header.split("; ").find((part) => part.startsWith(`${name}=`))?.slice(name.length + 1);
}

const isSigned = (token: string) => token.split(".").length === 2;
"#,
    ),
    (
        "src/shared/tables.ts",
        r#"export interface Table {
  number: number;
  seats: number;
}

export type Occupancy = Map<number, Date[]>;

const TABLES: Table[] = [
  { number: 1, seats: 2 },
  { number: 2, seats: 4 },
  { number: 3, seats: 8 },
];

/**
 * The smallest table that has enough seats and is free at this time.
 */
export function findFreeTable(guests: number, at: Date, taken: Occupancy = new Map()): Table | undefined {
  return TABLES.filter((table) => table.seats >= guests)
    .sort((one, other) => one.seats - other.seats)
    .find((table) => !(taken.get(table.number) ?? []).some((start) => overlaps(start, at)));
}

export const overlaps = (one: Date, other: Date): boolean =>
  Math.abs(one.getTime() - other.getTime()) < 2 * 60 * 60 * 1000;
"#,
    ),
    (
        "src/client/BookingForm.tsx",
        r#"import { useState } from "react";

export interface BookingFormProps {
  onBooked: (table: number) => void;
}

export function BookingForm({ onBooked }: BookingFormProps) {
  const [guests, setGuests] = useState(2);
  async function submit() {
    const response = await fetch("/api/bookings", { method: "POST", body: JSON.stringify({ guests }) });
    const { table } = await response.json();
    onBooked(table);
  }
  return <button onClick={submit}>Book for {guests}</button>;
}
"#,
    ),
    (
        "src/client/App.tsx",
        r#"import { BookingForm } from "./BookingForm";

export default function App() {
  return <BookingForm onBooked={(table) => alert(`Your table is ${table}`)} />;
}
"#,
    ),
    (
        "src/shared/tables.test.ts",
        r#"import { describe, expect, it } from "vitest";
import { findFreeTable, overlaps } from "./tables";

describe("findFreeTable", () => {
  it("prefers the smallest table", () => {
    expect(findFreeTable(2, new Date())?.number).toBe(1);
  });

  it("gives none to a party that is too large", () => {
    expect(findFreeTable(20, new Date())).toBeUndefined();
  });
});

describe("overlaps", () => {
  it("counts two hours", () => {
    expect(overlaps(new Date(0), new Date(60_000))).toBe(true);
  });
});
"#,
    ),
    (
        "public/vendor.min.js",
        "!function(){var e=findFreeTable;function findFreeTable(a){return a}window.BookingForm=e}();\n",
    ),
    (
        "Dockerfile",
        "FROM node:20-alpine AS build\nWORKDIR /app\nCOPY . .\nRUN npm ci && npm run build\n\nFROM node:20-alpine\nCOPY --from=build /app/dist /app/dist\nEXPOSE 8080\nCMD [\"node\", \"/app/dist/server/index.js\"]\n",
    ),
    (
        "docker-compose.yml",
        "services:\n  web:\n    build: .\n    ports:\n      - \"8080:8080\"\n    environment:\n      SESSION_SECRET: change-me\n",
    ),
    (
        "tsconfig.json",
        "{\n  \"compilerOptions\": {\n    \"strict\": true,\n    \"target\": \"ES2022\",\n    \"jsx\": \"react-jsx\"\n  }\n}\n",
    ),
];

fn asked() -> Vec<Asked> {
    vec![
        ask("what is this?")
            .says(&[
                "**tablekeeper**: Bookings for small restaurants. (`package.json:4`)",
                "> A booking page for small restaurants",
            ])
            .never(&["npm ci"]),
        ask("where is findFreeTable?")
            .says(&[
                "`findFreeTable` is a function, defined at `src/shared/tables.ts:17`",
                "> The smallest table",
            ])
            .never(&["vendor.min.js"]),
        ask("explain BookingForm").says(&["defined at `src/client/BookingForm.tsx:7`"]),
        ask("who uses requireSession?").says(&["`src/server/index.ts:9`"]),
        ask("is overlaps tested?").says(&["`src/shared/tables.test.ts:16` in `counts two hours`"]),
        ask("how do I run the tests?").says(&["`npm test`", "`package.json:10`"]),
        ask("how can I start the dev server").says(&["`npm run dev`"]),
        ask("how do I deploy it?").says(&["`docker compose up -d`"]),
        ask("which dependencies are there?").says(&["`express` ^4.21.0", "`vite` ^5.4.8"]),
        ask("how many TypeScript files are in src/shared?")
            .says(&["2 TypeScript files in `src/shared/`"]),
        ask("list the files under src/client").says(&["`src/client/App.tsx`", "2 files"]),
        ask("list the files in the lib directory").says(&["I found no folder `lib/`"]),
        ask("where are sessions checked?").says(&["`src/server/session.ts:"]),
        ask("what does --port do?").says(&["I found no `--port`"]),
        ask("write a test for overlaps").says(&["I cannot review, write, judge or fix"]),
        ask("how many guests fit at a table?")
            .says(&["I cannot count that"])
            .never(&["TypeScript ("]),
        ask("what is COOKIE_NAME")
            .says(&["`COOKIE_NAME` is a constant", "`src/server/session.ts:3`"])
            .never(&["Lets a request"]),
    ]
}
