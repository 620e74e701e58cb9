// A browser that fetches nothing, and pages that tell what went wrong in them.

import { chromium } from "playwright-core";

const ARGS = [
  "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking",
  "--disable-component-update", "--disable-sync",
];

export const launch = () =>
  chromium.launch({ executablePath: process.env.CHROMIUM, args: ARGS, headless: true });

// A page of its own, with a list of everything that should not have happened.
export async function visit(browser, address, { scheme = "light", width = 1024 } = {}) {
  const context = await browser.newContext({
    colorScheme: scheme, viewport: { width, height: 900 }, reducedMotion: "reduce",
  });
  const page = await context.newPage();
  const wrong = [];
  page.on("console", (m) => {
    if (["error", "warning"].includes(m.type())) wrong.push(`console: ${m.text()}`);
  });
  page.on("pageerror", (e) => wrong.push(`error: ${e.message}`));
  page.on("dialog", (d) => {
    wrong.push(`dialog: ${d.message()}`);
    d.dismiss();
  });
  page.on("request", (r) => {
    if (!/^(file|data):/.test(r.url())) wrong.push(`request: ${r.url()}`);
  });
  await page.addInitScript(() => {
    addEventListener("securitypolicyviolation", (e) =>
      console.error(`policy: ${e.violatedDirective} ${e.blockedURI} ${e.sample}`));
  });
  await page.goto(address);
  await page.waitForSelector("#map table, #session h2", { state: "attached" });
  return { page, wrong, close: () => context.close() };
}

// By how much a page is wider than its window, pixels.
export const overflow = (page) =>
  page.evaluate(() => document.documentElement.scrollWidth - innerWidth);

// All text of an element, white space as single blanks.
export const textOf = async (page, selector) =>
  (await page.locator(selector).first().innerText()).replace(/\s+/g, " ").trim();
