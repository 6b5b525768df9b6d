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
  const [format = usual] = oneOf(asked === undefined ? undefined : [asked], FORMATS, 'format') ?? [];
  const reading = await scrape(c.env, Date.now());
  if (format === 'json') return unredacted(c, renderMetrics(reading));
  return respond(c, exposition(reading), 200, { 'Content-Type': 'text/plain' });
}
