import { render } from 'preact';
import { App } from './app';
import { startKeyboard } from './core/keyboard';
import { mendLanguage } from './core/language';
import { startRouter } from './core/router';

const root = document.getElementById('app');
if (root) {
  mendLanguage(navigator);
  startRouter();
  startKeyboard();
  render(<App />, root);
}
