// Package lifecycle tries to break the promises that hold over time: a host on a real folder, real servers as child
// processes, files that change while sessions live, processes that are killed. It looks from outside, through the Door
// and through /proc, and knows nothing of how the parts are built. It holds no code of the product.
package lifecycle
