// Preloaded: servers of this process listen on loopback alone.
const net = require('net')
const listen = net.Server.prototype.listen
net.Server.prototype.listen = function (port, ...rest) {
  return listen.call(this, { port: Number(port), host: '127.0.0.1' }, ...rest)
}
