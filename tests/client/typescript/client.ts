// One list and one piece of feedback, with the types that the service's own document gives.
import type { components, paths } from "./service.js";

type Schemas = components["schemas"];
type Given = paths["/v1/rankers/{ranker}/rank"]["post"]["requestBody"];
declare const process: { argv: string[] };

const service = process.argv[2];

async function ask<Answer>(method: string, path: string, body: unknown): Promise<Answer> {
  const reply = await fetch(`${service}/v1/rankers/${path}`, {
    method,
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify(body),
  });
  if (!reply.ok) {
    const problem = (await reply.json()) as Schemas["ProblemDetails"];
    throw new Error(`${problem.status} ${problem.type}: ${problem.detail}`);
  }
  return (await reply.json()) as Answer;
}

const shop: Schemas["RankerRequest"] = { items: ["tea", "coffee", "milk"], k: 1, measure: "DCG" };
await ask<Schemas["RankerReply"]>("PUT", "typescript", shop);
const nothing: NonNullable<Given>["content"]["application/json"] = {};
const shown = await ask<Schemas["RankReply"]>("POST", "typescript/rank", nothing);
const seen: Schemas["FeedbackRequest"] = { status: "observed", relevance: [1] };
const told = await ask<Schemas["FeedbackReply"]>(
  "PUT", `typescript/events/${encodeURIComponent(shown.event_id)}/feedback`, seen,
);
console.log(JSON.stringify({ ranking: shown.ranking, learned: told.learned }));
