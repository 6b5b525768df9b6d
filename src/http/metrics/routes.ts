/** Metrics for monitoring: as Prometheus reads them, and as JSON. */
import { scrape } from '../../across/metrics';
import { type AppContext, respond, unredacted } from '../context';
import { oneOf, textParam } from '../request/query';
import { get, type Route } from '../route';
import { exposition } from './prometheus';
import { renderMetrics } from './render';

const FORMATS = ['json', 'prometheus'] as const;
type Format = (typeof FORMATS)[number];

/** Routes from the root on: where scrapers look, and where clients of the protocol do. */
export const metricsRoutes: readonly Route[] = [
  get('/metrics', (c) => metrics(c, 'prometheus'), { scope: 'metrics:read' }),
  get('/ojs/v1/metrics', (c) => metrics(c, 'json'), { scope: 'metrics:read' }),
];

async function metrics(c: AppContext, usual: Format): Promise<Response> {
  const asked = textParam(c, 'format');
  const [format = takesText(c) ? 'prometheus' : usual] =
    oneOf(asked === undefined ? undefined : [asked], FORMATS, 'format') ?? [];
  const reading = await scrape(c.env, Date.now());
  if (format === 'json') return unredacted(c, renderMetrics(reading));
  return respond(c, exposition(reading), 200, { 'Content-Type': 'text/plain' });
}

/** Does the client ask for the text of Prometheus and for no JSON, as Prometheus and its kin do? */
function takesText(c: AppContext): boolean {
  const accepted = c.req.header('Accept')?.toLowerCase() ?? '';
  return /text\/plain|application\/openmetrics-text/.test(accepted) && !accepted.includes('json');
}
